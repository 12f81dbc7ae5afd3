"""What all networks have in common."""

import copy

import pytest
import torch
from safetensors.torch import load_file, save_file

from prune4rel.errors import InputError
from prune4rel.networks import Network, list_networks, make, network, register_network

SHAPES = {"linear": (20,), "mlp": (20,), "preact-resnet18": (3, 32, 32), "small-cnn": (3, 8, 8)}
ALL = sorted(SHAPES)
IMAGES = [name for name in ALL if len(SHAPES[name]) == 3]


def build(name, n_classes=5, seed=0):
    torch.manual_seed(seed)
    return make(name, n_classes, shape=SHAPES[name])


def some_inputs(name, rows=4, seed=1):
    return torch.randn(rows, *SHAPES[name], generator=torch.Generator().manual_seed(seed))


def test_the_list_of_networks_is_complete():
    assert list_networks() == ALL
    assert list_networks("*resnet*") == ["preact-resnet18"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("rows", [2, 5])
def test_shapes(name, rows):
    network = build(name, n_classes=7)
    embeddings = network.embed(some_inputs(name, rows))
    assert embeddings.shape == (rows, network.dim)
    assert network.classify(embeddings).shape == (rows, 7)
    assert network.n_classes == 7


@pytest.mark.parametrize("name", ALL)
def test_forward_is_classify_of_embed(name):
    network = build(name).eval()
    x = some_inputs(name)
    assert torch.equal(network(x), network.classify(network.embed(x)))


@pytest.mark.parametrize("name", ALL)
def test_every_parameter_gets_a_gradient(name):
    network = build(name)
    torch.nn.functional.cross_entropy(network(some_inputs(name)), torch.tensor([0, 1, 2, 3])).backward()
    for key, weights in network.named_parameters():
        assert weights.grad is not None, key
        assert weights.grad.isfinite().all(), key
        assert weights.grad.abs().sum() > 0, key


@pytest.mark.parametrize("name", ALL)
def test_same_seed_same_weights_and_same_steps(name):
    one, two = build(name), build(name)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    x = some_inputs(name)
    assert torch.equal(one(x), two(x))
    assert torch.equal(one.eval()(x), two.eval()(x))


@pytest.mark.parametrize("name", ALL)
def test_evaluation_takes_every_input_by_itself_and_leaves_no_trace(name):
    network = build(name).eval()
    before = copy.deepcopy(network.state_dict())
    x = some_inputs(name)
    together = network(x)
    alone = torch.cat([network(row[None]) for row in x])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)
    assert all(torch.equal(before[key], value) for key, value in network.state_dict().items())


@pytest.mark.parametrize("name", IMAGES)
def test_training_moves_the_running_statistics(name):
    network = build(name)
    before = copy.deepcopy(dict(network.named_buffers()))
    network(some_inputs(name))
    assert all(not torch.equal(before[key], value) for key, value in network.named_buffers())


@pytest.mark.parametrize("name", ALL)
def test_state_survives_safetensors(name, tmp_path):
    network = build(name)
    network(some_inputs(name))  # running statistics that are not the initial ones
    save_file(network.state_dict(), tmp_path / "network.safetensors")
    other = build(name, seed=9)
    other.load_state_dict(load_file(tmp_path / "network.safetensors"))
    x = some_inputs(name)
    assert torch.equal(network.eval()(x), other.eval()(x))


@pytest.mark.parametrize("name", IMAGES)
def test_channels_last_gives_the_same(name):
    network = build(name).eval()
    x = some_inputs(name)
    plain = network(x)
    network.to(memory_format=torch.channels_last)
    torch.testing.assert_close(network(x.to(memory_format=torch.channels_last)), plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", IMAGES)
def test_channels_last_is_kept_all_the_way(name):
    network = build(name).to(memory_format=torch.channels_last)
    wrong = []

    def look(module, _inputs, outputs):
        images = [y for y in (outputs if isinstance(outputs, tuple) else [outputs]) if y.ndim == 4]
        if not all(y.is_contiguous(memory_format=torch.channels_last) for y in images):
            wrong.append(module)

    for module in network.modules():
        if module is not network:
            module.register_forward_hook(look)
    network(some_inputs(name).to(memory_format=torch.channels_last))
    assert not wrong


@pytest.mark.parametrize("name", ALL)
def test_bfloat16_autocast_is_close_and_trains(name):
    network = build(name)
    x, labels = some_inputs(name), torch.tensor([0, 1, 2, 3])
    reference = copy.deepcopy(network)(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = network(x)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits.float(), reference, rtol=0.1, atol=0.1)
    torch.nn.functional.cross_entropy(logits.float(), labels).backward()
    assert all(weights.grad.dtype == torch.float32 for weights in network.parameters())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("training", [True, False])
def test_compiles_to_one_graph(name, training):
    network = build(name).train(training)
    twin = copy.deepcopy(network)
    whole = torch.compile(network, fullgraph=True, backend="eager")
    x = some_inputs(name)
    assert torch.equal(whole(x), twin(x))


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 17, 9), (4, 1, 1), (3, 64, 64)])
def test_images_of_other_sizes(name, shape):
    network = make(name, 3, shape=shape)
    assert network(torch.randn(2, *shape)).shape == (2, 3)


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("shape", [(64,), (), (8, 8), (3, 0, 8)])
def test_networks_for_images_refuse_features(name, shape):
    with pytest.raises(InputError, match=r"takes images .* use 'mlp' for features"):
        make(name, 3, shape=shape)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("n_classes", [0, -1])
def test_no_classes_are_refused(name, n_classes):
    with pytest.raises(InputError, match="n_classes must be 1 or more"):
        make(name, n_classes)


def test_unknown_network_is_refused_with_the_nearest():
    with pytest.raises(
        InputError, match=r"unknown network 'preact-resnet'; did you mean 'preact-resnet18'\? Known: linear"
    ):
        make("preact-resnet", 10)


def test_unknown_option_is_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"'small-cnn' has no option 'widht'; did you mean 'width'\? Known: shape, w"):
        make("small-cnn", 10, widht=3)
    with pytest.raises(InputError, match=r"'mlp' has no option 'zzz'; Known: shape, width, depth"):
        make("mlp", 10, zzz=3)


@pytest.fixture
def own_networks(monkeypatch):
    monkeypatch.setattr(network, "NETWORKS", copy.copy(network.NETWORKS))


@pytest.mark.usefixtures("own_networks")
def test_a_network_of_ones_own_is_found():
    @register_network("flat")
    class Flat(Network):
        def __init__(self, n_classes, *, shape):
            super().__init__(shape[0], n_classes)

        def embed(self, x):
            return x

    assert "flat" in list_networks()
    assert make("flat", 3, shape=(6,))(torch.zeros(2, 6)).shape == (2, 3)


@pytest.mark.usefixtures("own_networks")
def test_a_function_that_takes_any_option_can_be_a_network():
    @register_network("bigger-mlp")
    def bigger(n_classes, **options):
        return make("mlp", n_classes, width=64, **options)

    assert make("bigger-mlp", 3, shape=(6,), depth=1).dim == 64


@pytest.mark.parametrize("name", ["preact-resnet18", "small-cnn", "mlp"])
def test_logits_are_in_full_precision_where_the_rest_is_mixed(name):
    """Eight bits of a logit are too few for losses that compare predictions with labels."""
    shape = (12,) if name == "mlp" else (3, 8, 8)
    network = make(name, 5, shape=shape)
    x = torch.randn(4, *shape, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        z = network.embed(x)
        logits = network.classify(z)
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, network.head(z.float()))
    assert name == "mlp" or z.dtype == torch.float32
