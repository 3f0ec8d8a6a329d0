#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "algorithms/loop/sam.h"
#include "tests/actors/memory_world.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_json.h"
#include "tests/golden/not_built.h"
#include "training/state.h"

namespace tutti {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

// The events of a run in their order, and the algorithms that ran at each.
class Story {
 public:
  void told(Event event, const std::string& who) {
    const bool resumes = !moments_.empty() && moments_.back().event == event &&
                         std::ranges::count(moments_.back().who, who) == 0;
    if (!resumes) moments_.push_back({event, {}});
    moments_.back().who.push_back(who);
  }

  Names events() const {
    Names names;
    for (const Moment& moment : moments_) names.emplace_back(name(moment.event));
    return names;
  }

  // The distinct orders in which they ran, by event.
  std::map<std::string, std::vector<Names>> orders() const {
    std::map<std::string, std::vector<Names>> found;
    for (const Moment& moment : moments_) {
      std::vector<Names>& orders = found[name(moment.event)];
      if (std::ranges::count(orders, moment.who) == 0) orders.push_back(moment.who);
    }
    return found;
  }

 private:
  struct Moment {
    Event event;
    Names who;
  };
  std::vector<Moment> moments_;
};

class Teller final : public Algorithm {
 public:
  Teller(std::string name, Story& story) : name_(std::move(name)), summary_(story) {}
  std::string name() const override { return name_; }
  bool match(Event, const State&) const override { return true; }
  void apply(Event event, State&, Logger&) override { summary_.told(event, "algorithm:" + name_); }

 private:
  std::string name_;
  Story& summary_;
};

class Witness final : public Callback {
 public:
  Witness(std::string name, Story& story) : name_(std::move(name)), summary_(story) {}
  std::string name() const override { return name_; }
  void run_event(Event event, State&, Logger&) override { summary_.told(event, name_); }

 private:
  std::string name_;
  Story& summary_;
};

// "trainer.eval(dl)", "trainer.predict(dl)", "trainer.fit(duration="1ba")"
Task task_of(const std::string& call) {
  static const std::regex fit(R"re(\s*trainer\.fit\((?:duration=)?(?:(\d+)|["']([^"']+)["'])\)\s*)re");
  static const std::regex on_data(R"(\s*trainer\.(eval|predict)\(\w*\)\s*)");
  std::smatch match;
  if (std::regex_match(call, match, fit))
    return train_on(match[1].matched ? match[1].str() + "ep" : match[2].str());
  if (!std::regex_match(call, match, on_data)) throw std::logic_error("no test knows the call " + call);
  return match[1] == "eval" ? evaluate_on() : predict_on();
}

std::vector<Task> tasks_of(const json& config) {
  std::vector<Task> tasks;
  static const std::regex call("[^;]*[^; ][^;]*");
  const std::string calls = config.value("then", "");
  for (std::sregex_iterator found(calls.begin(), calls.end(), call), end; found != end; ++found)
    tasks.push_back(task_of(found->str()));
  return tasks;
}

// "rho=0.1, interval=2"
std::shared_ptr<Algorithm> sam_of(const std::string& arguments) {
  std::map<std::string, double> values = {{"rho", 0.05}, {"interval", 1.0}};
  static const std::regex argument(R"(([^=, ]+) *= *([^=, ]+))");
  for (std::sregex_iterator found(arguments.begin(), arguments.end(), argument), end; found != end; ++found) {
    known(values, (*found)[1], "argument of SAM");
    values[(*found)[1]] = std::stod((*found)[2]);
  }
  return std::make_shared<SAM>(
      SAMOptions{.rho = values["rho"], .interval = static_cast<int64_t>(values["interval"])});
}

// "A, B, C, SAM(interval=2)": each but a SAM notes its events.
Algorithms algorithms_of(const json& config, Story& story) {
  static const std::regex item(R"( *(\w+)(?:\(([^()]*)\))? *(?:,|$))");
  const std::string text = config.value("algorithms", "A, B, C");
  Algorithms algorithms;
  std::smatch match;
  for (auto at = text.cbegin(); at != text.cend(); at = match[0].second) {
    if (!std::regex_search(at, text.cend(), match, item, std::regex_constants::match_continuous))
      throw std::logic_error("no test knows the algorithms " + text);
    const std::string name = match[1];
    if (name == "SAM")
      algorithms.push_back(sam_of(match[2]));
    else if (match[2].matched || is_not_built("algorithm " + name))
      throw std::logic_error("no test knows the algorithm " + match[0].str());
    else
      algorithms.push_back(std::make_shared<Teller>(name, story));
  }
  return algorithms;
}

Algorithms turned_round(const Algorithms& given) { return {given.rbegin(), given.rend()}; }

// "[algs[1], algs[0], algs[2]]": the indices in their order.
AlgorithmPass picking_pass(const std::string& items) {
  static const std::regex index(R"(\[(\d+)\])");
  std::vector<std::size_t> order;
  for (std::sregex_iterator found(items.begin(), items.end(), index), end; found != end; ++found)
    order.push_back(std::stoul((*found)[1]));
  return [order](const Algorithms& given, Event) {
    Algorithms picked;
    for (const std::size_t i : order) picked.push_back(given.at(i));
    return picked;
  };
}

Algorithms sorted_by_name(Algorithms given, Event) {
  std::ranges::stable_sort(given, {}, [](const auto& algorithm) { return algorithm->name(); });
  return given;
}

AlgorithmPass pass_of(const std::string& text);

// "lambda algs, event: ... if event == Event.INIT else ...": the head, then the condition and both branches.
AlgorithmPass choosing_pass(const std::smatch& parts) {
  return [there = pass_of(parts[1].str() + parts[3].str()), at = event_named(parts[4].str()),
          elsewhere = pass_of(parts[1].str() + parts[5].str())](const Algorithms& given, Event event) {
    return event == at ? there(given, event) : elsewhere(given, event);
  };
}

// "lambda algs, event: list(reversed(algs))"
AlgorithmPass pass_of(const std::string& text) {
  static const std::regex reversing(R"(lambda (\w+), *\w+: *(?:list\(reversed\(\1\)\)|\1\[::-1\]))");
  static const std::regex keeping(R"(lambda (\w+), *\w+: *(?:\1|\1\[:\]|list\(\1\)))");
  static const std::regex shortening(R"(lambda (\w+), *\w+: *\1\[(\d+):\])");
  static const std::regex picking(R"(lambda (\w+), *\w+: *\[((?:\1\[\d+\](?:, *)?)+)\])");
  static const std::regex sorting(R"(lambda (\w+), *\w+: *sorted\(\1, *key=lambda (\w+): *\2\.\w+\))");
  static const std::regex choosing(R"((lambda \w+, *(\w+): *)(.+) if \2 == Event\.(\w+) else (.+))");
  std::smatch match;
  if (std::regex_match(text, reversing))
    return [](const Algorithms& given, Event) { return turned_round(given); };
  if (std::regex_match(text, keeping)) return [](const Algorithms& given, Event) { return given; };
  if (std::regex_match(text, match, picking)) return picking_pass(match[2]);
  if (std::regex_match(text, sorting)) return sorted_by_name;
  if (std::regex_match(text, match, choosing)) return choosing_pass(match);
  if (!std::regex_match(text, match, shortening)) throw std::logic_error("no test knows the pass " + text);
  return [first = std::stol(match[2])](const Algorithms& given, Event) {
    return Algorithms(given.begin() + std::min<std::ptrdiff_t>(first, std::ssize(given)), given.end());
  };
}

// Composer's own passes are four; the third, which turns round what happens after something, is the only one
// that moves an algorithm of these runs. A pass that Composer puts before it comes after it here: it turns
// them back for the time being.
AlgorithmPass put_at(int index, AlgorithmPass pass) {
  constexpr int kOwnPasses = 4, kTurningPass = 2;
  const int place = index == -1 ? kOwnPasses : index < 0 ? index + kOwnPasses : index;
  if (place > kTurningPass) return pass;
  return [pass = std::move(pass)](const Algorithms& given, Event event) {
    return is_after(event) ? turned_round(pass(turned_round(given), event)) : pass(given, event);
  };
}

// A pass, or a pass and its place: "(lambda algs, event: list(reversed(algs)), 0)".
std::vector<AlgorithmPass> passes_of(const json& config) {
  if (!config.contains("algorithm_passes")) return {};
  static const std::regex placed(R"(\( *(?:\((lambda.*)\)|(lambda.*)) *, *(-?\d+) *\))");
  const std::string text = config.at("algorithm_passes");
  std::smatch match;
  if (!std::regex_match(text, match, placed)) return {pass_of(text)};
  return {put_at(std::stoi(match[3]), pass_of(match[match[1].matched ? 1 : 2]))};
}

// A time as a recipe takes it; a bare number counts epochs.
std::string time_text(const json& time) {
  return time.is_string() ? "'" + time.get<std::string>() + "'" : time.dump();
}

std::string recipe_for(const json& config) {
  const int batch = config.value("batch_size", 4), eval_batches = config.value("eval_batches", 0);
  const auto data = [batch](int batches) {
    return "kind = 'synthetic'\nsamples = " + std::to_string(batches * batch) +
           "\nbatch_size = " + std::to_string(batch) + "\nshape = [3]\n";
  };
  std::string text = "seed = 5\n[model]\nkind = 'mlp'\nhidden = [4]\n[optimizer]\nkind = 'sgd'\n";
  text += "[data.train]\n" + data(config.at("batches"));
  if (eval_batches > 0) text += "[data.eval]\n" + data(eval_batches);
  for (int e = 1; e < config.value("n_evaluators", 1); ++e)
    text += "[[evaluators]]\nlabel = 'eval" + std::to_string(e) + "'\n" + data(eval_batches);
  const json max_duration = config.contains("max_duration") ? config.at("max_duration") : config.at("epochs");
  return text + "[checkpoint]\ninterval = '0ba'\n[train]\nmax_duration = " + time_text(max_duration) +
         "\neval_interval = " + time_text(config.value("eval_interval", json("1ep"))) +
         "\n[compat]\ncomposer = true\n";
}

Story summary_of(const json& config) {
  expect_members(config,
                 {"epochs", "batches", "batch_size", "microbatch", "eval_batches", "n_evaluators",
                  "eval_interval", "max_duration", "then", "algorithms", "algorithm_passes", "note"},
                 "config");
  Story story;
  MemoryWorld world{.recipe = recipe_for(config), .ranks = 1};
  world.tasks = tasks_of(config);
  world.listeners = [&](int) {
    Engine::Options options;
    options.algorithms = algorithms_of(config, story);
    for (const char* name : {"callback:X", "callback:Y"})
      options.callbacks.push_back(std::make_shared<Witness>(name, story));
    for (const char* name : {"logger:L1", "logger:L2"})
      options.destinations.push_back(std::make_shared<Witness>(name, story));
    options.passes = passes_of(config);
    return options;
  };
  const int batch = config.value("batch_size", 4), part = config.value("microbatch", batch);
  const auto outcome = world.run(std::to_string((batch + part - 1) / part));
  EXPECT_EQ(outcome.error, "");
  return story;
}

class EventsTest : public testing::Test {
 protected:
  void SetUp() override {
    all_ = golden_json("events.json");
    if (all_.is_null()) GTEST_SKIP() << "no events.json";
  }

  json all_;
};

TEST_F(EventsTest, HaveNoUnknownSection) {
  expect_sections(all_,
                  {"composer_api", "runs", "pass_order", "default_passes", "two_loss_interpolations_warns",
                   "all_events", "algorithm_match_events"},
                  "events.json");
}

TEST_F(EventsTest, ComeInComposersOrder) {
  const json runs = all_.value("runs", json::object());
  for (const auto& [name, golden] : runs.items()) {
    expect_members(golden, {"config", "n_constructor_events", "events", "order_within_event"}, name);
    const Story story = summary_of(golden.at("config"));
    const Names events = story.events();
    EXPECT_EQ(json(events), golden.at("events")) << name;
    EXPECT_EQ(json(story.orders()), golden.at("order_within_event")) << name;
    // Composer's constructor ends where fit begins.
    const auto fit = std::ranges::find(events, "fit_start") - events.begin();
    EXPECT_EQ(golden.value("n_constructor_events", fit), fit) << name;
  }
}

TEST_F(EventsTest, HaveComposersNames) {
  if (!all_.contains("all_events")) GTEST_SKIP() << "no all_events";
  Names own;
  for (std::size_t i = 0; i < kEvents; ++i) own.emplace_back(name(static_cast<Event>(i)));
  EXPECT_EQ(json(own), all_.at("all_events"));
}

}  // namespace
}  // namespace tutti
