// A plugin with a model, algorithms, a callback and a logger; used by examples/cpp/plugin.toml.
#include <tutti/job/plugin.h>
#include <tutti/models/layers/norm.h>
#include <tutti/models/zoo/mlp.h>
#include <tutti/training/state.h>

#include <cstdio>

namespace {

// Under [sharding] a rank has its rows of the weights alone, in state.views: what reads or writes weights row
// by row uses these, on all ranks alike. visit_parameters gathers whole parameters, one after the other; all
// ranks call it, and those that say so look. At other times than these state.parameters have no numbers.
struct Printer final : tutti::Callback {
  std::string name() const override { return "Printer"; }
  void epoch_end(tutti::State& state, tutti::Logger&) override {
    if (state.rank == 0) std::printf("epoch %ld: loss %.4f\n", state.timestamp.epoch, state.train_loss);
  }
  void fit_end(tutti::State& state, tutti::Logger&) override {
    state.visit_parameters(state.rank == 0, [&state](std::size_t p) {
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

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  const tutti::Key width =
      tutti::Key{"width", tutti::KeyType::kInteger, "", "units of the layer"}.at_least(1);
  plugin.keys.models["narrow"] = {width};
  plugin.keys.algorithms["normalise"] = {width};
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
