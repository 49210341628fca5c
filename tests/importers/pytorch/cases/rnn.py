"""Recurrent networks: layers, directions, without biases, batch first, and without a batch."""

from torch import nn

from tests.importers.pytorch.cases import case, f


def _network(name, kind, x, *options, biases=True, layers=1, both=False, first=False):
    network = kind(3, 4, layers, bias=biases, bidirectional=both, batch_first=first)
    weights = [parameter.detach() for parameter in network.parameters()]
    batch = [] if x.dim() == 2 else [x.shape[0 if first else 1]]
    states = [f(layers * (2 if both else 1), *batch, 4) for _ in range(2 if kind is nn.LSTM else 1)]
    hx = states if kind is nn.LSTM else states[0]
    return case(f"{name}.input", x, hx, weights, biases, layers, 0.0, False, both, first)


CASES = [
    _network("lstm", nn.LSTM, f(5, 2, 3)),
    _network("lstm", nn.LSTM, f(2, 5, 3), layers=2, both=True, first=True),
    _network("lstm", nn.LSTM, f(5, 2, 3), biases=False),
    _network("gru", nn.GRU, f(5, 2, 3), both=True),
    _network("gru", nn.GRU, f(2, 5, 3), layers=2, first=True, biases=False),
    _network("rnn_tanh", nn.RNN, f(5, 2, 3)),
    _network("rnn_relu", nn.RNN, f(5, 2, 3)),
]
