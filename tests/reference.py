"""The equations in NumPy float64, written to be read next to the paper, not to be fast."""

import math

import numpy as np


def rms_norm(x, scale=None, offset=None, axis=-1, scale_axis=None, k=None, epsilon=1e-6, groups=1):
    """Returns `x / sqrt(mean(x**2) + epsilon) * scale + offset` (Zhang & Sennrich 2019, eq. 4).

    The mean runs over `axis`, or over its first `k` entries. `scale` and `offset` have one
    dimension for each of `scale_axis` (default: `axis`), in the order of x's dimensions.
    With `groups`, each of that many equal parts of the axis is divided by its own root mean square.
    """
    x = np.asarray(x, np.float64)
    axes = _normalize_axes(axis, x.ndim)
    parts = []
    for part in np.split(x, groups, axis=axes[0]):
        head = part if k is None else np.take(part, range(k), axis=axes[0])
        count = math.prod(head.shape[a] for a in axes)
        mean_square = np.sum(head**2, axis=axes, keepdims=True) / count
        parts.append(part / np.sqrt(mean_square + epsilon))
    y = np.concatenate(parts, axis=axes[0])
    scale_axes = axes if scale_axis is None else _normalize_axes(scale_axis, x.ndim)
    shape = [x.shape[a] if a in scale_axes else 1 for a in range(x.ndim)]
    if scale is not None:
        y = y * np.reshape(np.asarray(scale, np.float64), shape)
    if offset is not None:
        y = y + np.reshape(np.asarray(offset, np.float64), shape)
    return y


def layer_norm(x, scale=1.0, offset=0.0, epsilon=1e-6):
    """Returns `(x - mean(x)) / sqrt(var(x) + epsilon) * scale + offset` over the last axis."""
    x = np.asarray(x, np.float64)
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred**2, -1, keepdims=True) + epsilon) * scale + offset


def silu(x):
    """Returns `x * sigmoid(x)`."""
    x = np.asarray(x, np.float64)
    return x * sigmoid(x)


def simple_rnn_step(x, h, w, u, norm):
    """Returns the next h (Ba et al. 2016, eq. 4; the bias belongs to `norm`)."""
    return np.tanh(norm(x @ w + h @ u))


def gru_step(x, h, w_gates, u_gates, w, u, norms, reset_after=True):
    """Returns the next h (Ba et al. 2016, supplement, except that z and 1 - z change places).

    `norms` are the functions LN(.; alpha_i, beta_i) in their order there: of W_h h, W_x x, W x and
    U h.
    """
    of_state, of_input, of_input_proposal, of_state_proposal = norms
    z, r = np.split(sigmoid(of_state(h @ u_gates) + of_input(x @ w_gates)), 2, axis=-1)
    if reset_after:
        proposal = np.tanh(of_input_proposal(x @ w) + r * of_state_proposal(h @ u))
    else:
        proposal = np.tanh(of_input_proposal(x @ w) + of_state_proposal((r * h) @ u))
    return (1 - z) * proposal + z * h


def lstm_step(x, h, c, w, u, b, norms, normalize_carry=False):
    """Returns the next h and c (Ba et al. 2016, supplement, the gates in Keras's order i, f, g, o).

    `norms` are the functions LN(.; alpha_i, beta_i): of W_h h, of W_x x and of c.
    """
    of_state, of_input, of_carry = norms
    i, f, g, o = np.split(of_state(h @ u) + of_input(x @ w) + b, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    h = sigmoid(o) * np.tanh(of_carry(c))
    return h, of_carry(c) if normalize_carry else c


def over_time(step, x, *states):
    """Returns all outputs `[batch, time, units]` and the last states of `step(x_t, *states)`."""
    outputs = []
    for t in range(x.shape[1]):
        states = step(x[:, t], *states)
        states = states if isinstance(states, tuple) else (states,)
        outputs.append(states[0])
    return np.stack(outputs, 1), states


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numerical_gradient(function, x, step=1e-6):
    """Returns the gradient of the scalar `function` at `x` by central differences."""
    x = np.array(x, np.float64)
    gradient = np.empty_like(x)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + step
        above = function(x)
        x[i] = kept - step
        gradient[i] = (above - function(x)) / (2 * step)
        x[i] = kept
    return gradient


def _normalize_axes(axis, rank):
    axes = (axis,) if np.ndim(axis) == 0 else tuple(axis)
    return tuple(sorted(int(a) % rank for a in axes))
