// A plugin with a logger that writes the result file of an MLPerf Training submission, as Composer's
// MLPerfCallback does; used by examples/cpp/mlperf.toml. Lines are those of github.com/mlcommons/logging.
#include <tutti/io/json/json_line.h>
#include <tutti/job/plugin.h>
#include <tutti/runtime/clock.h>
#include <tutti/training/state.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace {

// A replay makes no loggers of plugins, so that nothing is written then. The timed run ends when `metric`, of
// the evaluator "eval", exceeds `target`; a threshold_stopper beside the logger ends the training there.
class MLPerf final : public tutti::LoggerDestination {
 public:
  struct Options {
    std::string path, benchmark, submitter, metric;
    double target = 0;
  };

  explicit MLPerf(Options options) : options_(std::move(options)) {}

  std::string name() const override { return "MLPerf"; }

  // A result is of one run from its beginning to its end. An error of a logger is a warning, and the logger
  // gets no more events: the file that exists stays as it is.
  void init(tutti::State& state, tutti::Logger&) override {
    if (state.topology.rank != 0) return;
    if (std::filesystem::exists(options_.path)) throw std::runtime_error(options_.path + " already exists");
    std::filesystem::create_directories(std::filesystem::absolute(options_.path).parent_path());
    file_.open(options_.path);
    if (!file_) throw std::runtime_error(options_.path + " cannot be written");
    write("INTERVAL_START", "init_start");
    write_fact("submission_benchmark", options_.benchmark);
    write_fact("submission_division", std::string("open"));
    write_fact("submission_org", options_.submitter);
    write_fact("submission_platform", std::to_string(state.topology.world) + " ranks of tutti");
  }

  void fit_start(tutti::State& state, tutti::Logger&) override {
    const auto eval = state.measured.find("eval");
    if (eval == state.measured.end() || !std::ranges::count(eval->second, options_.metric))
      throw std::runtime_error("no evaluator 'eval' measures " + options_.metric);
    write_fact("seed", static_cast<int64_t>(state.seed));
    write_fact("global_batch_size", state.global_batch);
    write_fact("gradient_accumulation_steps", int64_t{state.grad_accum});
    write_fact("train_samples", state.train_samples);
    write_fact("eval_samples", state.eval_samples);
    write("INTERVAL_END", "init_stop");
    write("INTERVAL_START", "run_start");
  }

  void epoch_start(tutti::State& state, tutti::Logger&) override {
    write("INTERVAL_START", "epoch_start", {{"epoch_num", now(state)}});
    write("INTERVAL_START", "block_start", {{"first_epoch_num", now(state)}, {"epoch_count", int64_t{1}}});
  }

  void epoch_end(tutti::State& state, tutti::Logger&) override {
    write("INTERVAL_END", "epoch_stop", {{"epoch_num", now(state)}});
  }

  void eval_start(tutti::State& state, tutti::Logger&) override {
    if (state.dataloader_label == "eval") write("INTERVAL_START", "eval_start", {{"epoch_num", now(state)}});
  }

  void eval_end(tutti::State& state, tutti::Logger&) override {
    const auto measured = state.metric_values.find("eval/" + options_.metric);
    if (state.evaluation_cut || state.dataloader_label != "eval" || measured == state.metric_values.end())
      return;
    write("INTERVAL_END", "eval_stop", {{"epoch_num", now(state)}});
    write_fact("eval_accuracy", measured->second, {{"epoch_num", now(state)}});
    write("INTERVAL_END", "block_stop", {{"first_epoch_num", now(state)}});
    if (!(measured->second > options_.target)) return;  // nor NaN
    write("INTERVAL_END", "run_stop", {{"status", std::string("success")}});
    file_.close();
  }

 private:
  void write_fact(const char* key, tutti::JsonValue value, const tutti::JsonFields& metadata = {}) {
    write("POINT_IN_TIME", key, metadata, {{"value", std::move(value)}});
  }

  void write(const char* type, const char* key, const tutti::JsonFields& metadata = {},
             const tutti::JsonFields& value = {}) {
    if (!file_.is_open()) return;
    const std::string head = tutti::json_line({{"namespace", std::string()},
                                               {"time_ms", tutti::SystemClock().unix_ms()},
                                               {"event_type", std::string(type)},
                                               {"key", std::string(key)}});
    const std::string fact = value.empty() ? R"({"value": null})" : tutti::json_line(value);
    file_ << ":::MLLOG " << head.substr(0, head.size() - 1) << ", " << fact.substr(1, fact.size() - 2)
          << ", \"metadata\": " << tutti::json_line(metadata) << "}" << std::endl;
    if (!file_) throw std::runtime_error(options_.path + " cannot be written");
  }

  // Epochs, or samples.
  int64_t now(const tutti::State& state) const {
    return options_.benchmark == "bert" ? state.timestamp.sample : state.timestamp.epoch;
  }

  Options options_;
  std::ofstream file_;  // open on rank 0 until the target is reached
};

}  // namespace

const char* tutti_plugin_build_stamp() { return TUTTI_BUILD_STAMP; }

void tutti_plugin(tutti::Plugin& plugin) {
  using enum tutti::KeyType;
  plugin.keys.loggers["mlperf"] = {
      {"path", kPath, "", "the result file"},
      tutti::Key{"benchmark", kText, "resnet", "bert counts time in samples"}.one_of({"resnet", "bert"}),
      {"submitter", kText, "", "the organisation"},
      {"metric", kText, "MulticlassAccuracy", "the metric that the target is for"},
      {"target", kNumber, "0.759", "the timed run ends above it"}};
  plugin.loggers["mlperf"] = [](const tutti::Setting& options) {
    return std::make_shared<MLPerf>(MLPerf::Options{
        options.at("path").text(), options.at("benchmark").text(), options.at("submitter").text(),
        options.at("metric").text(), options.at("target").number()});
  };
}
