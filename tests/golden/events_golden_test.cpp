#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/actors/memory_world.h"
#include "tests/actors/second_pass.h"
#include "tests/golden/golden_file.h"
#include "training/state.h"

namespace tutti {
namespace {

using nlohmann::json;

// Empty where the folder has none.
json golden_events() {
  std::ifstream file(golden_path("events.json"));
  return file ? json::parse(file) : json::object({{"runs", json::object()}, {"all_events", json::array()}});
}

// What happened at the events of a run: the events in their order, and who ran at each.
struct Story {
  std::vector<std::string> events;
  std::map<std::string, std::vector<std::string>> order;

  void told(Event event, const std::string& who) {
    auto& order_now = order[name(event)];
    if (open_ != static_cast<int>(event) || seen_.contains(who)) {
      events.emplace_back(name(event));
      order_now.clear();
      seen_.clear();
    }
    open_ = static_cast<int>(event);
    seen_.insert(who);
    order_now.push_back(who);
  }

 private:
  int open_ = -1;
  std::set<std::string> seen_;
};

class Teller final : public Algorithm {
 public:
  Teller(std::string name, Story& story) : name_(std::move(name)), story_(story) {}
  std::string name() const override { return name_; }
  bool match(Event, const State&) const override { return true; }
  void apply(Event event, State&, Logger&) override { story_.told(event, "algorithm:" + name_); }

 private:
  std::string name_;
  Story& story_;
};

class Witness final : public Callback {
 public:
  Witness(std::string name, Story& story) : name_(std::move(name)), story_(story) {}
  std::string name() const override { return name_; }
  void run_event(Event event, State&, Logger&) override { story_.told(event, name_); }

 private:
  std::string name_;
  Story& story_;
};

// "trainer.eval(dl); trainer.predict(dl); trainer.fit(duration="1ba")"
std::vector<Task> tasks_of(const json& config) {
  std::vector<Task> tasks;
  std::istringstream calls(config.value("then", ""));
  static const std::regex fit(R"re( *trainer\.fit\(duration="(\w+)"\))re");
  std::smatch match;
  for (std::string call; std::getline(calls, call, ';');) {
    if (std::regex_match(call, match, fit))
      tasks.push_back(train_on(match[1]));
    else if (call.ends_with("trainer.eval(dl)"))
      tasks.push_back(evaluate_on());
    else if (call.ends_with("trainer.predict(dl)"))
      tasks.push_back(predict_on());
    else
      throw std::logic_error("no test knows the call " + call);
  }
  return tasks;
}

// Of the SAM beside the algorithms A, B and C, or 0.
int interval_of_sam(const json& config) {
  const std::string text = config.value("algorithms", "A, B, C"), sam = "A, B, C, SAM(interval=";
  if (text == "A, B, C") return 0;
  if (!text.starts_with(sam)) throw std::logic_error("no test knows the algorithms " + text);
  return std::stoi(text.substr(sam.size()));
}

std::string recipe_for(const json& config) {
  const int batch = config.value("batch_size", 4);
  const int eval_batches = config.value("eval_batches", 0);
  const auto data = [batch](const std::string& section, int batches) {
    return "[data." + section + "]\nkind = 'synthetic'\nsamples = " + std::to_string(batches * batch) +
           "\nbatch_size = " + std::to_string(batch) + "\nshape = [3]\n";
  };
  std::string others;
  for (int e = 1; e < config.value("n_evaluators", 1); ++e)
    others +=
        "[[evaluators]]\nlabel = 'eval" + std::to_string(e) + data("", eval_batches).replace(0, 8, "'\n");
  return "seed = 5\n[model]\nkind = 'mlp'\nhidden = [4]\n" + data("train", config["batches"].get<int>()) +
         (eval_batches ? data("eval", eval_batches) : "") + others +
         "[optimizer]\nkind = 'sgd'\n[checkpoint]\ninterval = '0ba'\n[train]\nmax_duration = '" +
         config["max_duration"].get<std::string>() + "'\neval_interval = '" +
         config.value("eval_interval", "1ep") + "'\n";
}

Story story_of(const json& config) {
  Story story;
  MemoryWorld world{.recipe = recipe_for(config), .ranks = 1};
  world.tasks = tasks_of(config);
  world.listeners = [&](int) {
    Engine::Options options;
    for (const char* name : {"A", "B", "C"})
      options.algorithms.push_back(std::make_shared<Teller>(name, story));
    if (const int interval = interval_of_sam(config))
      options.algorithms.push_back(std::make_shared<SecondPass>(0.05, interval));
    for (const char* name : {"callback:X", "callback:Y"})
      options.callbacks.push_back(std::make_shared<Witness>(name, story));
    for (const char* name : {"logger:L1", "logger:L2"})
      options.destinations.push_back(std::make_shared<Witness>(name, story));
    if (config.contains("algorithm_passes"))
      options.passes = {
          [](const Algorithms& given, Event) { return Algorithms(given.rbegin(), given.rend()); }};
    return options;
  };
  const int batch = config.value("batch_size", 4), part = config["microbatch"].get<int>();
  const auto outcome = world.run(std::to_string((batch + part - 1) / part));
  EXPECT_EQ(outcome.error, "");
  return story;
}

TEST(EventsTest, ComeInComposersOrder) {
  const json runs = golden_events()["runs"];
  int run = 0;
  for (const auto& [name, golden] : runs.items()) {
    ++run;
    const Story story = story_of(golden["config"]);
    EXPECT_EQ(json(story.events), golden["events"]) << name;
    for (const auto& [event, orders] : golden["order_within_event"].items())
      EXPECT_EQ(json(story.order.at(event)), orders[0]) << name << ", " << event;
  }
  if (is_own_folder()) {
    EXPECT_GE(run, 8);
  }
}

TEST(EventsTest, NamesAreComposers) {
  const json all = golden_events()["all_events"];
  if (is_own_folder()) {
    ASSERT_EQ(all.size(), kEvents);
  }
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], name(static_cast<Event>(i)));
}

}  // namespace
}  // namespace tutti
