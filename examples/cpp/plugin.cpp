// A plugin with a model, a dataset, algorithms, a callback and a logger; used by examples/cpp/plugin.toml.
#include <ATen/ATen.h>
#include <tutti/data/readers/synthetic_dataset.h>
#include <tutti/job/plugin.h>
#include <tutti/models/layers/norm.h>
#include <tutti/models/zoo/mlp.h>
#include <tutti/training/state.h>

#include <cstdio>
#include <fstream>

namespace {

// Under [sharding] a rank has only its rows of the weights, in state.views: code that reads or writes weights
// row by row uses these, on all ranks alike. visit_parameters gathers whole parameters, one after the other;
// all ranks call it, and those with a `visit` look. At other times state.parameters have no numbers.
struct Printer final : tutti::Callback {
  std::string name() const override { return "Printer"; }
  void epoch_end(tutti::State& state, tutti::Logger&) override {
    if (state.topology.rank == 0)
      std::printf("epoch %ld: loss %.4f\n", state.timestamp.epoch, state.train_loss);
  }
  void fit_end(tutti::State& state, tutti::Logger&) override {
    state.visit_parameters(state.topology.rank == 0, [&state](std::size_t p) {
      const auto& [name, parameter] = state.parameters[p];
      std::printf("%s: norm %.4f\n", name.c_str(), parameter->tensor.norm().item<double>());
    });
  }
};

// Halves the training time.
struct Shorten final : tutti::Algorithm {
  std::string name() const override { return "Shorten"; }
  bool match(tutti::Event event, const tutti::State&) const override {
    return event == tutti::Event::kFitStart;
  }
  void apply(tutti::Event, tutti::State& state, tutti::Logger&) override {
    state.max_duration = state.max_duration * 0.5;
  }
};

// Replaces the first activation by a LayerNorm.
struct Normalise final : tutti::Algorithm {
  explicit Normalise(int64_t width) : width(width) {}
  std::string name() const override { return "Normalise"; }
  bool match(tutti::Event event, const tutti::State&) const override { return event == tutti::Event::kInit; }
  void apply(tutti::Event, tutti::State& state, tutti::Logger&) override {
    state.model->slots().at(1)->fill(std::make_shared<tutti::LayerNorm>(width));
  }
  int64_t width;
};

// Counts the logged values.
struct Tally final : tutti::LoggerDestination {
  std::string name() const override { return "Tally"; }
  void log_metrics(const tutti::LoggedMetrics& metrics, const tutti::LogTime&) override {
    values += metrics.size();
  }
  bool finish(bool) override {
    std::printf("%ld values logged\n", values);
    return true;
  }
  long values = 0;
};

// Digits of a text file: in each line the label, then 8 x 8 numbers.
tutti::DatasetPtr digits_of(const tutti::Setting& file) {
  std::ifstream text(file.text());
  if (!text) file.fail("it cannot be read");
  std::vector<double> numbers;
  for (double number = 0; text >> number;) numbers.push_back(number);
  const at::Tensor lines = at::tensor(numbers).view({-1, 65});
  const at::Tensor images = lines.narrow(1, 1, 64).to(at::kFloat).view({-1, 1, 8, 8});
  tutti::Batch samples;
  samples.set("input", images);
  samples.set("target", lines.select(1, 0).to(at::kLong));
  return std::make_shared<tutti::TensorDataset>(samples, 10);
}

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  const tutti::Key width =
      tutti::Key{"width", tutti::KeyType::kInteger, "", "units of the layer"}.at_least(1);
  plugin.keys.models["narrow"] = {width};
  plugin.keys.algorithms["normalise"] = {width};
  // Declared as a path, it is relative to the recipe, and found wherever the run is replayed.
  plugin.keys.datasets["lines"] = {{"file", tutti::KeyType::kPath, "", "a text file of digits"}};
  plugin.datasets["lines"] = [](const tutti::Setting& options) { return digits_of(options.at("file")); };
  plugin.models["narrow"] = [](const tutti::Setting& options, const tutti::SampleSpec& samples) {
    return std::make_shared<tutti::Mlp>(
        tutti::MlpOptions{64, {options.at("width").integer()}, samples.classes});
  };
  plugin.algorithms["shorten"] = [](const tutti::Setting&) { return std::make_shared<Shorten>(); };
  plugin.algorithms["normalise"] = [](const tutti::Setting& options) {
    return std::make_shared<Normalise>(options.at("width").integer());
  };
  plugin.callbacks["printer"] = [](const tutti::Setting&) { return std::make_shared<Printer>(); };
  plugin.loggers["tally"] = [](const tutti::Setting&) { return std::make_shared<Tally>(); };
}
