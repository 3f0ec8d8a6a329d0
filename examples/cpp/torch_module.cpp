// A torch::nn::Module as a plugin; used by torch_module.toml and explained in docs/models.md.
#include <torch/nn/modules/batchnorm.h>  // or <torch/nn.h>, which takes longer to compile
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <tutti/job/plugin.h>
#include <tutti/models/torch/torch_module.h>

namespace {

struct Net : torch::nn::Module {
  Net(int64_t inputs, int64_t width, int64_t classes)
      : first(register_module("first", torch::nn::Linear(inputs, width))),
        norm(register_module("norm", torch::nn::BatchNorm1d(width))),
        dropout(register_module("dropout", torch::nn::Dropout(0.1))),
        last(register_module("last", torch::nn::Linear(width, classes))) {}
  torch::Tensor forward(torch::Tensor x) {
    return last(dropout(torch::relu(norm(first(x.flatten(1))))));
  }

  torch::nn::Linear first;
  torch::nn::BatchNorm1d norm;
  torch::nn::Dropout dropout;
  torch::nn::Linear last;
};

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  plugin.keys.models["net"] = {
      tutti::Key{"width", tutti::KeyType::kInteger, "64", "features between the layers"}.at_least(1)};
  plugin.models["net"] = [](const tutti::Setting& options, const tutti::SampleSpec& samples) {
    return std::make_shared<tutti::LayerClassifier>(tutti::adapt([&] {
      return std::make_shared<Net>(c10::multiply_integers(samples.shapes.at("input")),
                                   options.at("width").integer(), samples.classes);
    }));
  };
}
