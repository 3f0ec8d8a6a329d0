#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "runtime/disk.h"
#include "tests/actors/memory_world.h"
#include "tests/actors/sleeping_world.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_json.h"
#include "training/callbacks/factory.h"
#include "training/loggers/in_memory.h"
#include "training/state.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr std::size_t kMostListed = 12;  // loggings of a key that the file holds at most

constexpr const char* kNoCallback = "none";

// Arguments with which the file's runs were made where it names none.
const std::map<std::string, std::map<std::string, std::string>> kUntold = {
    {"ActivationMonitor", {{"interval", "'1ba'"}}},
    {"EarlyStopper", {{"monitor", "'MulticlassAccuracy'"}, {"patience", "'9ep'"}}},
    {"OptimizerMonitor", {{"batch_log_interval", "1"}}},
    {"ThresholdStopper", {{"monitor", "'MulticlassAccuracy'"}, {"threshold", "-1"}}}};

using Loggings = std::map<std::string, std::vector<int64_t>>;  // by key, the batches at which it was logged

// A callback, and its log.
class Overheard final : public Callback {
 public:
  struct Heard : Logger {
    void log_metrics(const LoggedMetrics& metrics) override {
      for (const auto& [key, value] : metrics) {
        if (at[key].size() < kMostListed) at[key].push_back(batch);
        values[key].push_back(value);
      }
    }
    int64_t batch = 0;
    Loggings at;
    std::map<std::string, std::vector<double>> values;
  };

  Overheard(std::shared_ptr<Callback> callback, Heard& heard)
      : callback_(std::move(callback)), heard_(heard) {}

  std::string name() const override { return callback_->name(); }
  void run_event(Event event, State& state, Logger&) override {
    heard_.batch = state.timestamp.batch;
    callback_->run_event(event, state, heard_);
  }

 private:
  std::shared_ptr<Callback> callback_;
  Heard& heard_;
};

std::string composers_name(const std::string& call) { return call.substr(0, call.find('(')); }

// The arguments of "EarlyStopper(monitor='loss', patience=2)" as a recipe has them.
std::map<std::string, std::string> arguments_of(const std::string& call) {
  const std::string one = R"re( *(\w+) *= *('[^']*'|"[^"]*"|\[[^\]]*\]|[^,()'"[\] ]+) *)re";
  static const std::regex whole("\\w+(\\((" + one + "(," + one + ")*)?\\))?"), argument(one);
  if (!std::regex_match(call, whole)) throw std::logic_error("no test knows the call " + call);
  static const std::map<std::string, std::string> constants = {{"True", "true"}, {"False", "false"}};
  std::map<std::string, std::string> arguments;
  for (std::sregex_iterator found(call.begin(), call.end(), argument), end; found != end; ++found) {
    const std::string value = (*found)[2];
    const auto constant = constants.find(value);
    if (value != "None") arguments[(*found)[1]] = constant == constants.end() ? value : constant->second;
  }
  return arguments;
}

// Composer's ActivationMonitor takes a bare number for batches, a recipe for epochs.
void count_batches(std::map<std::string, std::string>& arguments) {
  const auto interval = arguments.find("interval");
  if (interval != arguments.end() && interval->second.find_first_not_of("0123456789") == std::string::npos)
    interval->second = "'" + interval->second + "ba'";
}

// The table of the recipe for "SpeedMonitor(window_size=2)".
std::string section_of(const std::string& call) {
  const std::string name = composers_name(call);
  auto arguments = arguments_of(call);
  if (call == name && kUntold.contains(name)) arguments = kUntold.at(name);
  if (name == "ActivationMonitor") count_batches(arguments);
  std::string section = "[[callbacks]]\nkind = '" + recipe_kind("[[callbacks]]", name) + "'\n";
  for (const auto& [key, value] : arguments) section += key + " = " + value + "\n";
  return section;
}

// The file's run: its model is Flatten, Linear(64, 32), ReLU, Linear(32, 10).
std::string recipe_with(const std::string& section) {
  return R"(
seed = 1
[model]
kind = "mlp"
hidden = [32]
[data.train]
kind = "synthetic"
samples = 96
batch_size = 32
shape = [64]
[data.eval]
kind = "synthetic"
samples = 96
batch_size = 32
shape = [64]
[optimizer]
kind = "decoupled_adamw"
lr = 0.01
[scheduler]
kind = "cosine_annealing_with_warmup"
t_warmup = "2ba"
[checkpoint]
interval = "0ba"
[train]
max_duration = "3ep"
eval_interval = "1ep"
[compat]
composer = true
)" + section;
}

// tutti's name of what Composer calls module.1.weight: its model has no layer that flattens.
std::string own_name(std::string key) {
  const std::string module = "module.";
  const auto at = key.find(module);
  if (at == std::string::npos) return key;
  const int layer = key[at + module.size()] - '0';
  return key.replace(at, module.size() + 1, std::to_string(std::max(0, layer - 1)));
}

// One a tensor, where Composer's ActivationMonitor logs one a sample of it.
bool is_of_a_sample(const std::string& key) {
  return key.starts_with("activations/") && !key.ends_with(".0");
}

Loggings golden_loggings(const json& golden) {
  Loggings loggings;
  for (const auto& [key, batches] : golden.at("keys").items())
    if (!is_of_a_sample(key)) loggings[own_name(key)] = batches.get<std::vector<int64_t>>();
  return loggings;
}

// Entries that only tutti logs: the file shows the first of the activations' keys, and the meter counts on a
// CPU too.
bool is_more_than_composers(const std::string& key) {
  return key.starts_with("activations/") || key.starts_with("memory/");
}

void expect_golden(const std::string& call, const json& golden) {
  SCOPED_TRACE(call);
  const std::string recipe = recipe_with(section_of(call));
  Overheard::Heard heard;
  PosixDisk disk;
  MemoryWorld world{.recipe = recipe, .ranks = 1};
  world.listeners = [&](int) {
    Engine::Options options;
    const auto own = make_callbacks(recipe_of(recipe), {disk});
    options.callbacks = {std::make_shared<Overheard>(own.front(), heard)};
    return options;
  };
  const auto outcome = world.run("1");
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.counts.size(), golden.at("stopped_at_batch").get<std::size_t>());
  const Loggings wanted = golden_loggings(golden);
  for (const auto& [key, batches] : wanted) {
    EXPECT_EQ(heard.at[key], batches) << key;
    EXPECT_NE(outcome.metrics.find("\"" + key + "\": "), std::string::npos) << key << " is in no line";
  }
  for (const auto& [key, batches] : heard.at) {
    EXPECT_TRUE(wanted.contains(key) || is_more_than_composers(key)) << key;
  }
  const json known = golden.value("values", json::object());
  for (const auto& [key, values] : known.items())
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(heard.values[own_name(key)].at(i), values[i].get<double>(), 1e-12) << key << " " << i;
}

// The trainer's own entries.
void expect_golden_trainer(const json& golden) {
  const auto memory = std::make_shared<InMemoryLogger>();
  MemoryWorld world{.recipe = recipe_with(""), .ranks = 1};
  world.listeners = [&](int) { return Engine::Options{.destinations = {memory}}; };
  const auto outcome = world.run("1");
  ASSERT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.counts.size(), golden.at("stopped_at_batch").get<std::size_t>());
  const Loggings wanted = golden_loggings(golden);
  for (const auto& name : memory->names())
    EXPECT_TRUE(wanted.contains(name) || name == "metrics/eval/loss") << name;  // tutti's own
  for (const auto& [key, batches] : wanted) {
    std::vector<int64_t> found;
    for (const auto& point : memory->get_timeseries(key))
      if (found.size() < kMostListed) found.push_back(point.time.at.batch);
    EXPECT_EQ(found, batches) << key;
  }
}

TEST(CallbacksGoldenTest, LogWhatComposersDoAndWhenTheyDo) {
  const json all = golden_json("callbacks.json");
  if (all.is_null()) GTEST_SKIP() << "not in " << golden_folder();
  expect_sections(all, {"about", "callbacks"}, "callbacks.json");
  const json runs = all.at("callbacks");
  for (const auto& [call, golden] : runs.items()) {
    if (call == kNoCallback) {
      expect_members(golden, {"keys", "stopped_at_batch"}, call);
      expect_golden_trainer(golden);
      continue;
    }
    expect_members(golden, {"keys", "stopped_at_batch", "values"}, call);
    ASSERT_NO_THROW(recipe_kind("[[callbacks]]", composers_name(call))) << call;
    expect_golden(call, golden);
  }
  EXPECT_FALSE(runs.empty());
}

}  // namespace
}  // namespace tutti
