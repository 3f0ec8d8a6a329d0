#include "training/engine/engine.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/synthetic_dataset.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

using Said = std::vector<std::string>;

// Matches on request, and says when it acts.
class Sayer final : public Algorithm {
 public:
  Sayer(std::string name, Said& said, Needs needs = {})
      : name_(std::move(name)), said_(said), needs_(needs) {}

  std::string name() const override { return name_; }
  Needs needs() const override { return needs_; }
  bool writes_parameters() const override { return writes; }
  bool match(Event event, const State& state) const override { return wants(event, state); }
  void apply(Event, State& state, Logger&) override {
    said_.push_back(name_);
    if (acts) acts(state);
  }
  void require(const State&) const override { said_.push_back(name_ + " requires"); }
  bool try_on(const State&, Batch& sample) const override {
    if (sample.find(name_)) throw UserError("it has been here");
    said_.push_back(name_ + " tries " + std::to_string(sample.leaves().size()));
    sample.set(name_, sample[kInputArray]);
    return false;
  }

  Event tried_at() const override { return tries; }

  Event tries = Event::kAfterDataloader;
  bool writes = true;
  std::function<bool(Event, const State&)> wants = [](Event, const State&) { return true; };
  std::function<void(State&)> acts;

 private:
  std::string name_;
  Said& said_;
  Needs needs_;
};

class Watcher final : public Callback {
 public:
  Watcher(std::string name, Said& said) : name_(std::move(name)), said_(said) {}

  std::string name() const override { return name_; }
  void run_event(Event event, State& state, Logger& logger) override {
    said_.push_back(name_);
    Callback::run_event(event, state, logger);
  }
  void batch_end(State&, Logger&) override { said_.push_back(name_ + " sees a batch end"); }
  void out_of_memory(State&, Logger&, const std::string& account) override {
    said_.push_back(name_ + " hears: " + account);
  }
  void close(State&, Logger&) override {
    said_.push_back(name_ + " closes");
    if (fails) throw UserError("it cannot");
  }

  bool fails = false;

 private:
  std::string name_;
  Said& said_;
};

class EngineTest : public testing::Test {
 protected:
  std::shared_ptr<Sayer> sayer(const std::string& name, Needs needs = {}) {
    auto made = std::make_shared<Sayer>(name, said_, needs);
    options_.algorithms.push_back(made);
    return made;
  }
  Said run(Event event) {
    said_.clear();
    Engine engine(state_, logger_, options_);
    engine.run_event(event);
    return said_;
  }

  State state_;
  Logger logger_;
  Said said_;
  Engine::Options options_;
};

TEST_F(EngineTest, AlgorithmsThenCallbacksThenDestinations) {
  sayer("A"), sayer("B");
  options_.callbacks = {std::make_shared<Watcher>("X", said_)};
  options_.destinations = {std::make_shared<Watcher>("L", said_)};
  Engine engine(state_, logger_, options_);
  engine.run_event(Event::kFitStart);
  EXPECT_THAT(said_, ElementsAre("A", "B", "X", "L"));
}

// Runs an event that it has no function for in the function of another.
struct Nested final : Callback {
  std::string name() const override { return "Nested"; }
  void batch_end(State&, Logger&) override { engine->run_event(Event::kEvalStart); }
  Engine* engine = nullptr;
};

TEST_F(EngineTest, CallbacksThatRunEventsAct) {
  const auto nested = std::make_shared<Nested>();
  options_.callbacks = {nested};
  Engine engine(state_, logger_, options_);
  nested->engine = &engine;
  EXPECT_TRUE(engine.acts(Event::kEvalStart));
  engine.run_event(Event::kBatchEnd);
  EXPECT_TRUE(engine.acts(Event::kBatchEnd));
  EXPECT_FALSE(engine.acts(Event::kEvalStart));
}

TEST_F(EngineTest, AtInitDestinationsComeFirst) {
  sayer("A"), sayer("B");
  options_.callbacks = {std::make_shared<Watcher>("X", said_)};
  options_.destinations = {std::make_shared<Watcher>("L", said_)};
  Engine engine(state_, logger_, options_);
  engine.run_event("INIT");
  EXPECT_THAT(said_, ElementsAre("L", "X", "A", "B"));
}

TEST_F(EngineTest, AnAlgorithmActsAfterThoseThatItNamesAtReversedEventsToo) {
  sayer("C", {.after = {"A", "B"}}), sayer("B", {.after = {"A"}}), sayer("A"), sayer("D");
  EXPECT_THAT(run(Event::kBatchEnd), ElementsAre("A", "B", "C", "D"));
  EXPECT_THAT(run(Event::kAfterForward), ElementsAre("D", "A", "B", "C"));
  state_.composer = true;
  EXPECT_THAT(run(Event::kAfterForward), ElementsAre("D", "A", "B", "C")) << "the list, reversed";
}

TEST_F(EngineTest, AlgorithmsThatExcludeEachOtherAreAnErrorAtTheRecipesLine) {
  sayer("A");
  sayer("B", {.excludes = {{"A", "both swap the weights"}}});
  const auto make = [this] { Engine engine(state_, logger_, options_); };
  EXPECT_THAT(make, ThrowsMessage<UserError>("B: B cannot be combined with A: both swap the weights"));
  options_.algorithms[1]->set_section({Setting::Table(), "algorithms.1", {"r.toml", 7}});
  EXPECT_THAT(make, ThrowsMessage<UserError>(HasSubstr("r.toml:7: [algorithms.1]: B cannot")));
}

TEST_F(EngineTest, ActsThatMayChangeParametersAreCounted) {
  sayer("Clips")->writes = false;
  sayer("Averages")->wants = [](Event event, const State&) { return event != Event::kBatchEnd; };
  Engine engine(state_, logger_, options_);
  const auto counted = [&](Event event) {
    const int64_t before = state_.acts_on_parameters;
    engine.run_event(event);
    return state_.acts_on_parameters - before;
  };
  for (const Event event : {Event::kBeforeDataloader, Event::kAfterTrainBatch, Event::kEvalStart})
    EXPECT_EQ(counted(event), 1) << name(event);
  for (const Event event : {Event::kAfterDataloader, Event::kBatchStart, Event::kAfterBackward})
    EXPECT_EQ(counted(event), 0) << name(event) << ": the step may be retried";
  EXPECT_EQ(counted(Event::kBatchEnd), 0) << "only the one that writes none has acted";
}

TEST_F(EngineTest, EveryListenersNeedsAreAskedFor) {
  sayer("A"), sayer("B");
  Engine(state_, logger_, options_).require();
  EXPECT_THAT(said_, ElementsAre("A requires", "B requires"));
}

// Surgery, then transforms of the data, then what acts on batches: reversed, as at AFTER_DATALOADER. Nobody
// is asked whether it matches, since no event is run.
TEST_F(EngineTest, ASampleGoesThroughAllInTheOrderInWhichTheyAct) {
  sayer("A"), sayer("B"), sayer("first", {.first = true});
  sayer("transform")->tries = Event::kFitStart;
  sayer("surgery")->tries = Event::kInit;
  for (const auto& one : options_.algorithms)
    std::static_pointer_cast<Sayer>(one)->wants = [](Event, const State&) -> bool {
      throw std::logic_error("no event is run");
    };
  const SyntheticDataset data({.shape = {2}});
  state_.dataset = &data;
  Engine(state_, logger_, options_).require();
  const Said tried(said_.begin() + 5, said_.end());
  EXPECT_THAT(tried,
              ElementsAre("surgery tries 2", "transform tries 3", "first tries 4", "B tries 5", "A tries 6"));
  options_.algorithms.push_back(options_.algorithms.front());
  options_.algorithms.front()->set_section({Setting::Table(), "algorithms.0", {"r.toml", 7}});
  EXPECT_THAT([&] { Engine(state_, logger_, options_).require(); },
              ThrowsMessage<UserError>(HasSubstr("r.toml:7: [algorithms.0]: it has been here")));
}

TEST_F(EngineTest, TheReadyCallComesBeforeTheFirstAlgorithm) {
  sayer("A"), sayer("B");
  Engine engine(state_, logger_, options_);
  engine.run_event(Event::kBatchEnd, [&] { said_.push_back("ready"); });
  EXPECT_THAT(said_, ElementsAre("ready", "A", "B"));
}

class BrokenWatcher final : public Callback {
 public:
  std::string name() const override { return "Broken"; }
  void run_event(Event, State&, Logger&) override { throw UserError("no such server"); }
};

TEST_F(EngineTest, ADestinationThatFailsIsAWarningAndACallbackThatDoesIsAnError) {
  Said warnings;
  options_.warn = [&](const std::string& what) { warnings.push_back(what); };
  options_.destinations = {std::make_shared<BrokenWatcher>(), std::make_shared<Watcher>("L", said_)};
  Engine engine(state_, logger_, options_);
  engine.run_event(Event::kInit);
  engine.run_event(Event::kFitStart);
  EXPECT_THAT(said_, ElementsAre("L", "L"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no such server")));
  options_.callbacks = {std::make_shared<BrokenWatcher>()};
  Engine strict(state_, logger_, options_);
  EXPECT_THROW(strict.run_event(Event::kFitStart), UserError);
}

TEST_F(EngineTest, AnErrorThatIsNotTuttisNamesWhoActedAndKeepsItsKind) {
  const auto error_when_acting = [&](const std::function<void(State&)>& acts) {
    options_ = {};
    sayer("Scaler")->acts = acts;
    try {
      run(Event::kBatchEnd);
    } catch (const OperatingError& error) {
      return RankEnd{error.kind(), error.what()};
    }
    return RankEnd{};
  };
  const RankEnd bare = error_when_acting([](State& state) { state.metric_values.at("none"); });
  EXPECT_EQ(bare.kind, EndKind::kProgramError);
  EXPECT_EQ(bare.reason, "Scaler at batch_end: a name or index is looked up that does not exist (map::at)");
  const RankEnd torch = error_when_acting([](State&) { TORCH_CHECK(false, "no such axis"); });
  EXPECT_EQ(torch.kind, EndKind::kOperatingError);
  EXPECT_EQ(torch.reason, "Scaler at batch_end: no such axis");
  const auto out_of_memory = [](State&) { throw c10::OutOfMemoryError({}, "no memory"); };
  EXPECT_THROW(error_when_acting(out_of_memory), c10::OutOfMemoryError);
  EXPECT_THROW(error_when_acting([](State&) { throw UserError("wrong"); }), UserError);
}

TEST_F(EngineTest, AfterIsTheReverseOfBefore) {
  sayer("A"), sayer("B"), sayer("C");
  EXPECT_THAT(run(Event::kBeforeLoss), ElementsAre("A", "B", "C"));
  EXPECT_THAT(run(Event::kAfterLoss), ElementsAre("C", "B", "A"));
  EXPECT_THAT(run(Event::kEvalAfterForward), ElementsAre("A", "B", "C"));
  EXPECT_THAT(run(Event::kBatchEnd), ElementsAre("A", "B", "C"));
}

TEST_F(EngineTest, FirstAndLastAlgorithmsAreFirstAndLast) {
  sayer("A"), sayer("last", {.last = true}), sayer("B"), sayer("first", {.first = true});
  EXPECT_THAT(run(Event::kInit), ElementsAre("first", "A", "B", "last"));
  EXPECT_THAT(run(Event::kAfterDataloader), ElementsAre("first", "B", "A", "last"));
  state_.composer = true;
  EXPECT_THAT(run(Event::kInit), ElementsAre("first", "A", "B", "last"));
  EXPECT_THAT(run(Event::kAfterDataloader), ElementsAre("last", "B", "A", "first"));
}

TEST_F(EngineTest, PassesOfTheUserHaveTheLastWord) {
  sayer("A"), sayer("B");
  options_.passes = {[](const Algorithms& given, Event) { return Algorithms(given.rbegin(), given.rend()); }};
  EXPECT_THAT(run(Event::kBatchEnd), ElementsAre("B", "A"));
  EXPECT_THAT(run(Event::kAfterForward), ElementsAre("A", "B"));
}

TEST_F(EngineTest, AllAlgorithmsAreAskedBeforeTheFirstActs) {
  sayer("A")->acts = [](State& state) { state.grad_accum = 7; };
  sayer("B")->wants = [](Event, const State& state) { return state.grad_accum == 1; };
  EXPECT_THAT(run(Event::kBatchEnd), ElementsAre("A", "B"));
}

TEST_F(EngineTest, TracesHaveTheOrderOfExecution) {
  sayer("A"), sayer("B")->wants = [](Event, const State&) { return false; }, sayer("C");
  Engine engine(state_, logger_, options_);
  const auto traces = engine.run_event(Event::kAfterLoss);
  ASSERT_EQ(traces.size(), 3u);
  EXPECT_TRUE(traces[0].ran && !traces[1].ran && traces[2].ran);
  EXPECT_EQ(traces[0].order, 1);
  EXPECT_EQ(traces[1].order, -1);
  EXPECT_EQ(traces[2].order, 0);
}

TEST_F(EngineTest, TracesAreLoggedWhereAskedFor) {
  struct Traces final : Logger {
    LoggedTraces seen;
    void log_traces(const LoggedTraces& traces) override { seen = traces; }
  } logger;
  sayer("EMA"), sayer("SWA")->wants = [](Event, const State&) { return false; };
  options_.log_traces = true;
  Engine(state_, logger, options_).run_event(Event::kBatchEnd);
  EXPECT_THAT(logger.seen, ElementsAre(std::pair("algorithm_traces/EMA/batch_end", 1)))
      << "of those that matched alone";
}

TEST_F(EngineTest, CallbacksGetTheFunctionOfTheEvent) {
  options_.callbacks = {std::make_shared<Watcher>("X", said_)};
  Engine engine(state_, logger_, options_);
  engine.run_event(Event::kBatchStart);
  engine.run_event(Event::kBatchEnd);
  EXPECT_THAT(said_, ElementsAre("X", "X", "X sees a batch end"));
}

TEST_F(EngineTest, CallbacksHearOfMemoryThatRanOut) {
  options_.callbacks = {std::make_shared<Watcher>("X", said_)};
  options_.destinations = {std::make_shared<Watcher>("L", said_)};
  Engine(state_, logger_, options_).out_of_memory("too much");
  EXPECT_THAT(said_, ElementsAre("X hears: too much", "L hears: too much", "X closes", "L closes"));
}

// As at an event.
TEST_F(EngineTest, ADestinationThatFailsWhenMemoryRunsOutHearsNoMore) {
  struct Failing final : Callback {
    std::string name() const override { return "L"; }
    void out_of_memory(State&, Logger&, const std::string&) override {
      if (++heard == 1) throw 42;
    }
    int heard = 0;
  };
  const auto failing = std::make_shared<Failing>();
  options_.destinations = {failing, std::make_shared<Watcher>("M", said_)};
  Said warnings;
  options_.warn = [&](const std::string& text) { warnings.push_back(text); };
  Engine engine(state_, logger_, options_);
  engine.out_of_memory("too much");
  engine.out_of_memory("again");
  EXPECT_THAT(said_, ElementsAre("M hears: too much", "M hears: again"));
  EXPECT_EQ(failing->heard, 1);
  EXPECT_THAT(warnings, ElementsAre("L gets no more events: an unknown exception"));
}

TEST_F(EngineTest, AllListenersAreClosedOnceThoughOneThrows) {
  const auto failing = std::make_shared<Watcher>("X", said_);
  failing->fails = true;
  options_.callbacks = {failing, std::make_shared<Watcher>("Y", said_)};
  Said warnings;
  options_.warn = [&](const std::string& text) { warnings.push_back(text); };
  {
    Engine engine(state_, logger_, options_);
    engine.close();
    engine.close();
  }
  EXPECT_THAT(said_, ElementsAre("X closes", "Y closes"));
  EXPECT_THAT(warnings, ElementsAre("X: it cannot"));
}

TEST_F(EngineTest, WarnsOfTwoThatInterpolateTheLoss) {
  Said warnings;
  options_.warn = [&](const std::string& text) { warnings.push_back(text); };
  sayer("MixUp", {.interpolates_loss = true});
  Engine(state_, logger_, options_);
  EXPECT_THAT(warnings, IsEmpty());
  sayer("CutMix", {.interpolates_loss = true});
  Engine(state_, logger_, options_);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("MixUp, CutMix")));
}

TEST_F(EngineTest, RefusesTwoThatMakePassesOfTheirOwn) {
  sayer("SAM", {.closure = true}), sayer("EMA");
  Engine(state_, logger_, options_);
  sayer("Climbing", {.closure = true});
  EXPECT_THAT([&] { Engine(state_, logger_, options_); },
              ThrowsMessage<UserError>(HasSubstr("Climbing cannot be combined with SAM: only one")));
}

TEST(EventTest, EveryEventIsFoundByItsName) {
  for (std::size_t i = 0; i < kEvents; ++i) {
    const auto event = static_cast<Event>(i);
    EXPECT_EQ(event_named(name(event)), event);
  }
}

TEST(EventTest, HasComposersOlderNamesToo) {
  EXPECT_EQ(event_named("TRAINING_START"), Event::kFitStart);
  EXPECT_EQ(event_named("training_end"), Event::kFitEnd);
}

TEST(EventTest, UnknownNameIsAUserErrorThatSuggestsTheNearest) {
  EXPECT_THAT([] { event_named("batch_ends"); },
              ThrowsMessage<UserError>(HasSubstr("did you mean batch_end?")));
}

TEST(StateTest, StopTrainingEndsItWithTheBatchUnderWay) {
  State state;
  state.max_duration = Time(4, TimeUnit::kEpoch);
  state.timestamp.batch = 6;
  EXPECT_FALSE(reached(state.timestamp, state.max_duration));
  state.stop_training();
  EXPECT_TRUE(reached(state.timestamp, state.max_duration));
}

}  // namespace
}  // namespace tutti
