"""Builds translation models, and defines the interface that training and search use."""
