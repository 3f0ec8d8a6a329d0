#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tests/golden/golden_file.h"
#include "tests/golden/golden_json.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

constexpr const char* kFirst = "SelectiveBackprop";
constexpr const char* kLast = "LowPrecisionLayerNorm";
constexpr const char* kWarnings = "two_loss_interpolations_warns";

// Stands for an algorithm of Composer's: what Composer's passes know it by, it says of itself.
class Stub final : public Algorithm {
 public:
  Stub(std::string name, Names& acted) : name_(std::move(name)), acted_(acted) {}
  std::string name() const override { return name_; }
  Needs needs() const override {
    return {.first = name_ == kFirst,
            .last = name_ == kLast,
            .interpolates_loss = name_.ends_with("(interpolate_loss)")};
  }
  bool match(Event, const State&) const override { return true; }
  void apply(Event, State&, Logger&) override { acted_.push_back(name_); }

 private:
  std::string name_;
  Names& acted_;
};

// The actions of an engine with such algorithms at an event.
struct Done {
  Names order, warnings;
};

Done done_at(Event event, const Names& algorithms) {
  Done done;
  State state;
  state.composer = true;
  Logger logger;
  Engine::Options options;
  options.warn = [&](const std::string& warning) { done.warnings.push_back(warning); };
  for (const std::string& name : algorithms)
    options.algorithms.push_back(std::make_shared<Stub>(name, done.order));
  Engine(state, logger, options).run_event(event);
  return done;
}

// Composer's passes by their names, as it documents them: composer.core.passes.
using Pass = std::function<Names(Names, Event)>;

Pass sorted_by(const std::function<bool(const std::string&)>& comes_first) {
  return [=](Names names, Event) {
    std::ranges::stable_partition(names, comes_first);
    return names;
  };
}

Names turned_round_after(Names names, Event event) {
  if (std::string(name(event)).starts_with("after_")) std::ranges::reverse(names);
  return names;
}

constexpr const char* kWarningPass = "warn_if_multiple_loss_interpolation";

const std::map<std::string, Pass> kPasses = {
    {"sort_selective_backprop_first", sorted_by([](const auto& name) { return name == kFirst; })},
    {"sort_low_precision_layernorm_last", sorted_by([](const auto& name) { return name != kLast; })},
    {"set_filo_order", turned_round_after},
    {kWarningPass, [](Names names, Event) { return names; }}};

// The subject of a warning of Composer's class.
const std::map<std::string, std::string> kTopics = {{"NotIntendedUseWarning", "interpolate the loss"}};

const Names kInterpolating = {"MixUp(interpolate_loss)", "CutMix(interpolate_loss)"};

class GoldenPasses : public testing::Test {
 protected:
  void SetUp() override {
    all_ = golden_json("events.json");
    if (all_.is_null()) GTEST_SKIP() << "no events.json";
  }

  json all_;
};

TEST_F(GoldenPasses, OrderAlgorithmsAsComposersDo) {
  for (const json& entry : all_.value("pass_order", json::array())) {
    expect_members(entry, {"event", "algorithms", "order"}, "pass_order");
    const Event event = event_named(entry.at("event").get<std::string>());
    EXPECT_EQ(json(done_at(event, entry.at("algorithms")).order), entry.at("order")) << entry;
  }
}

// The passes, one after the other, give the engine's result.
TEST_F(GoldenPasses, AreComposersDefaultPasses) {
  if (!all_.contains("default_passes")) GTEST_SKIP() << "no default_passes";
  const Names passes = all_.at("default_passes");
  for (const Names& algorithms : {Names{"A", kLast, "B", kFirst, "C"}, Names{kLast, kFirst}, Names{"A", "B"}})
    for (std::size_t i = 0; i < kEvents; ++i) {
      const Event event = static_cast<Event>(i);
      Names order = algorithms;
      for (const std::string& pass : passes) order = known(kPasses, pass, "pass")(order, event);
      EXPECT_EQ(done_at(event, algorithms).order, order) << json(passes) << " at " << name(event);
    }
  EXPECT_EQ(done_at(Event::kInit, kInterpolating).warnings.size(),
            static_cast<std::size_t>(std::ranges::count(passes, kWarningPass)));
}

TEST_F(GoldenPasses, WarnOfTwoInterpolationsOfTheLossAsComposersDo) {
  if (!all_.contains(kWarnings)) GTEST_SKIP() << "no " << kWarnings;
  const Names wanted = all_.at(kWarnings), given = done_at(Event::kInit, kInterpolating).warnings;
  ASSERT_EQ(given.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NE(given[i].find(known(kTopics, wanted[i], "warning")), std::string::npos) << given[i];
  EXPECT_TRUE(done_at(Event::kInit, {kInterpolating[0], "CutMix"}).warnings.empty());
}

}  // namespace
}  // namespace tutti
