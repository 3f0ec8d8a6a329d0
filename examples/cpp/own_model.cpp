// A model of one's own as a plugin; used by own_model.toml and explained in docs/models.md.
#include <ATen/ATen.h>
#include <tutti/job/plugin.h>
#include <tutti/models/layers/activation.h>
#include <tutti/models/layers/blocks.h>
#include <tutti/models/layers/linear.h>
#include <tutti/models/layers/norm.h>

namespace {

// x + scale * dropout(gelu(linear(norm(x)))), with a scale for each feature.
struct Block final : tutti::Layer {
  Block(int64_t width, double drop)
      : norm(add_slot("norm", std::make_shared<tutti::LayerNorm>(width))),
        linear(add_slot("linear", std::make_shared<tutti::Linear>(width, width))),
        dropout(add_slot("dropout", std::make_shared<tutti::Dropout>(drop))),
        scale(add_parameter("scale", {width}, tutti::constant_init(0.5))) {}
  tutti::TensorTree forward(const tutti::TensorTree& input) override {
    const at::Tensor& x = input.tensor();
    return x + scale.tensor * dropout(at::gelu(linear(norm(x))));
  }
  const char* kind() const override { return "ScaledBlock"; }

  tutti::Slot &norm, &linear, &dropout;
  tutti::Parameter& scale;
};

std::shared_ptr<tutti::Layer> blocks_of(int64_t count, int64_t width, double drop) {
  std::vector<std::shared_ptr<tutti::Layer>> blocks;
  for (int64_t i = 0; i < count; ++i) blocks.push_back(std::make_shared<Block>(width, drop));
  return std::make_shared<tutti::Sequential>(blocks);
}

// Cross entropy, and a penalty on large scores as in PaLM: the squared logarithm of the softmax's sum.
struct Net final : tutti::Classifier {
  Net(int64_t inputs, int64_t width, int64_t blocks, double drop, int64_t classes)
      : stem(add_slot("stem", std::make_shared<tutti::Linear>(inputs, width))),
        body(add_slot("body", blocks_of(blocks, width, drop))),
        head(add_slot("head", std::make_shared<tutti::Linear>(width, classes))) {}
  tutti::TensorTree forward(const tutti::Batch& batch) override {
    return head(body(stem(batch["input"].flatten(1))));
  }
  at::Tensor loss(const tutti::Outputs& outputs, const tutti::Batch& batch) override {
    const at::Tensor size = at::logsumexp(outputs.tensor(), 1);
    return Classifier::loss(outputs, batch) + 1e-4 * size.square().mean();
  }
  const char* kind() const override { return "Net"; }

  tutti::Slot &stem, &body, &head;
};

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  using tutti::Key, tutti::KeyType;
  plugin.keys.models["net"] = {
      Key{"width", KeyType::kInteger, "32", "features between the layers"}.at_least(1),
      Key{"blocks", KeyType::kInteger, "2", "how many"}.at_least(1),
      Key{"dropout", KeyType::kNumber, "0.1", "probability"}.at_least(0).less_than(1)};
  plugin.models["net"] = [](const tutti::Setting& options, const tutti::SampleSpec& samples) {
    return std::make_shared<Net>(c10::multiply_integers(samples.shapes.at("input")),
                                 options.at("width").integer(), options.at("blocks").integer(),
                                 options.at("dropout").number(), samples.classes);
  };
}
