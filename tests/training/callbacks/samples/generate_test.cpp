#include "training/callbacks/samples/generate.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo/gpt.h"
#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::ThrowsMessage;

// Adds to a prompt its last token, again and again; knows how it was asked.
class Parrot final : public Model {
 public:
  explicit Parrot(int64_t vocabulary = 256) : vocabulary_(vocabulary) {}
  TensorTree forward(const Batch& batch) override { return batch; }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor(); }
  const char* kind() const override { return "Parrot"; }
  int64_t vocabulary() const override { return vocabulary_; }
  std::vector<Tokens> generate(const std::vector<Prompt>& prompts, const GenerationOptions& how) override {
    asked.push_back(prompts.size());
    if (prompts.size() > room) TORCH_CHECK_WITH(OutOfMemoryError, false, "no room");
    std::vector<Tokens> found;
    for (const Prompt& one : prompts) {
      found.emplace_back(how.max_new_tokens, one.tokens.back());
      draws.push_back(one.draws.bits());
    }
    return found;
  }

  std::size_t room = 100;  // prompts at once
  std::vector<std::size_t> asked;
  std::vector<uint64_t> draws;

 private:
  int64_t vocabulary_;
};

struct Tables final : Logger {
  std::vector<LoggedTable> all;
  void log_table(const LoggedTable& table) override { all.push_back(table); }
  bool has_destinations() const override { return false; }
};

class GenerateTest : public CallbackTest {
 protected:
  GenerateTest() {
    state_.model = parrot_;
    state_.seed = 5;
  }

  std::unique_ptr<Generate> made(const char* interval, const std::vector<Setting::Value>& prompts,
                                 int64_t batch_size = 0) {
    Generate::Options options{Setting(list_value(prompts), "callbacks.0.prompts", {"test.toml", 7}),
                              batch_size};
    options.generation.max_new_tokens = 3;
    return std::make_unique<Generate>(Time::parse(std::string_view(interval)), options);
  }
  void tell(Callback& callback, Event event) { callback.run_event(event, state_, tables_); }
  void step(Callback& callback) {
    tell(callback, Event::kAfterTrainBatch);
    state_.to_next_batch(32, 0, 1.0);
    for (const Event event : {Event::kBatchEnd, Event::kBatchCheckpoint}) tell(callback, event);
    if (state_.timestamp.batch_in_epoch < state_.dataloader_len) return;
    state_.timestamp.to_next_epoch();
    for (const Event event : {Event::kEpochEnd, Event::kEpochCheckpoint}) tell(callback, event);
  }
  // The batches after which it wrote.
  std::vector<int64_t> batches(Callback& callback, int count) {
    std::vector<int64_t> found;
    tell(callback, Event::kFitStart);
    for (int i = 0; i < count; ++i) {
      const std::size_t before = tables_.all.size();
      step(callback);
      if (tables_.all.size() > before) found.push_back(state_.timestamp.batch);
    }
    return found;
  }
  std::string why_refused(const std::vector<Setting::Value>& prompts) {
    try {
      made("1ba", prompts)->require(state_);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  std::shared_ptr<Parrot> parrot_ = std::make_shared<Parrot>();
  Tables tables_;
};

TEST_F(GenerateTest, LogsATableOfPromptsAndWhatFollows) {
  const auto generate =
      made("2ba", {std::string("ab"), std::string(""), list_value({int64_t{7}, int64_t{65}})});
  EXPECT_THAT(batches(*generate, 2), ElementsAre(2));
  ASSERT_THAT(tables_.all, SizeIs(1));
  EXPECT_EQ(tables_.all[0].name, "generations");
  EXPECT_THAT(tables_.all[0].columns, ElementsAre("prompt", "generation"));
  EXPECT_THAT(tables_.all[0].rows, ElementsAre(ElementsAre("ab", "bbb"), ElementsAre("", "\n\n\n"),
                                               ElementsAre("7 65", "65 65 65")));
}

TEST_F(GenerateTest, BadBytesAreShownAsReplacementCharacters) {
  const auto generate = made("1ba", {std::string("\xc3\xa4")});
  step(*generate);
  EXPECT_EQ(tables_.all.at(0).rows[0][1], "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(GenerateTest, KeepsItsIntervalInAnyUnit) {
  EXPECT_THAT(batches(*made("3ba", {std::string("a")}), 9), ElementsAre(3, 6, 9));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("1ep", {std::string("a")}), 25), ElementsAre(10, 20));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("0.25dur", {std::string("a")}), 25), ElementsAre(10, 20));
  state_.timestamp = {};
  EXPECT_THAT(batches(*made("100sp", {std::string("a")}), 8), ElementsAre(4, 7));
}

TEST_F(GenerateTest, WritesAtTheEndOfTheTrainingOnce) {
  const auto generate = made("2ba", {std::string("a")});
  batches(*generate, 3);
  tell(*generate, Event::kFitEnd);
  EXPECT_THAT(tables_.all, SizeIs(2));
  tell(*generate, Event::kFitEnd);
  EXPECT_THAT(tables_.all, SizeIs(2));
  step(*generate);
  tell(*generate, Event::kFitEnd);
  EXPECT_THAT(tables_.all, SizeIs(3)) << "the interval was over with the last batch";
}

TEST_F(GenerateTest, ARunThatResumesRepeatsNothingAndForgetsNothing) {
  const auto first = made("2ba", {std::string("a")});
  batches(*first, 1);
  tell(*first, Event::kAfterTrainBatch);
  state_.to_next_batch(32, 0, 1.0);
  tell(*first, Event::kBatchEnd);  // and then it is stopped in the evaluation
  const auto second = made("2ba", {std::string("a")});
  second->restore(first->state());
  tell(*second, Event::kFitStart);
  tell(*second, Event::kBatchCheckpoint);
  EXPECT_THAT(tables_.all, SizeIs(1));
  const auto third = made("2ba", {std::string("a")});
  third->restore(second->state());
  tell(*third, Event::kFitStart);
  tell(*third, Event::kFitEnd);
  EXPECT_THAT(tables_.all, SizeIs(1)) << "it was over";
  EXPECT_THAT(batches(*third, 3), ElementsAre(4));
}

// For the progress of the run too, if there is no logger.
TEST_F(GenerateTest, RankZeroAloneWrites) {
  const auto generate = made("1ba", {std::string("a")});
  state_.topology.rank = 1;
  step(*generate);
  const std::string of_another = generate->state();
  EXPECT_THAT(parrot_->asked, IsEmpty());
  state_.timestamp = {};
  state_.topology.rank = 0;
  const auto of_zero = made("1ba", {std::string("a")});
  step(*of_zero);
  EXPECT_THAT(tables_.all, SizeIs(1));
  EXPECT_EQ(of_zero->state(), of_another) << "ranks remember the same";
}

TEST_F(GenerateTest, PromptsAreTakenSoManyAtATime) {
  const std::vector<Setting::Value> five(5, std::string("a"));
  step(*made("1ba", five, 2));
  EXPECT_THAT(parrot_->asked, ElementsAre(2, 2, 1));
  parrot_->asked.clear();
  step(*made("1ba", five));
  EXPECT_THAT(parrot_->asked, ElementsAre(5));
}

TEST_F(GenerateTest, PromptsThatDoNotFitAreSplit) {
  parrot_->room = 2;
  const std::vector<Setting::Value> five(5, std::string("a"));
  step(*made("1ba", five));
  EXPECT_THAT(parrot_->asked, ElementsAre(5, 3, 2, 2, 1));
  EXPECT_THAT(tables_.all.at(0).rows, SizeIs(5));
  parrot_->room = 0;
  EXPECT_THROW(step(*made("1ba", five)), c10::OutOfMemoryError);
}

TEST_F(GenerateTest, DrawsAreOfTheSeedTheBatchAndThePrompt) {
  const std::vector<Setting::Value> two(2, std::string("a"));
  const auto draws_of = [&](int64_t seed, int64_t batch) {
    parrot_->draws.clear();
    state_.seed = seed;
    state_.timestamp.batch = batch;
    tell(*made("1ba", two), Event::kFitEnd);
    return parrot_->draws;
  };
  const auto first = draws_of(5, 1);
  EXPECT_EQ(draws_of(5, 1), first);
  EXPECT_NE(first[0], first[1]);
  EXPECT_NE(draws_of(5, 2), first);
  EXPECT_NE(draws_of(6, 1), first);
}

TEST_F(GenerateTest, PromptsThatTheModelCannotTakeAreErrorsThatNameTheKey) {
  EXPECT_EQ(why_refused({std::string("a"), list_value({int64_t{255}})}), "");
  EXPECT_THAT(why_refused({}),
              AllOf(HasSubstr("test.toml:7: callbacks.0.prompts"), HasSubstr("list of texts")));
  EXPECT_THAT(why_refused({1.5}), HasSubstr("a text, or a list of tokens"));
  EXPECT_THAT(why_refused({list_value({})}), HasSubstr("at least one token"));
  EXPECT_THAT(why_refused({list_value({int64_t{256}})}), HasSubstr("0 to 255, not 256"));
  EXPECT_NE(why_refused({list_value({std::string("a")})}), "");
  state_.model = std::make_shared<Parrot>(1000);
  EXPECT_THAT(why_refused({std::string("a")}), HasSubstr("this model has 1000 tokens, which are not bytes"));
  EXPECT_EQ(why_refused({list_value({int64_t{999}})}), "");
  state_.model = std::make_shared<Parrot>(128);
  EXPECT_THAT(why_refused({std::string("\xc3\xa4")}), HasSubstr("0 to 127, not 195"));
}

TEST_F(GenerateTest, AModelThatWritesNoTextIsAnError) {
  state_.model = std::make_shared<TwiceTwice>();
  EXPECT_THAT([&] { made("1ba", {std::string("a")})->require(state_); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("callbacks.0.prompts = "), HasSubstr("TwiceTwice cannot generate text"))));
}

TEST_F(GenerateTest, OfAGptTheSameComesOutEveryTime) {
  const auto gpt = std::make_shared<Gpt>(GptOptions{
      .vocab_size = 256, .n_positions = 8, .n_embd = 16, .n_layer = 1, .n_head = 2, .dropout = 0.5});
  materialise(*gpt, 5);
  state_.model = gpt;
  for (int i = 0; i < 2; ++i) tell(*made("1ba", {std::string("ab"), std::string("c")}), Event::kFitEnd);
  ASSERT_THAT(tables_.all, SizeIs(2));
  EXPECT_EQ(tables_.all[0].rows, tables_.all[1].rows);
  EXPECT_THAT(tables_.all[0].rows[0][1], Not(IsEmpty()));
  EXPECT_TRUE(gpt->context().training);
}

}  // namespace
}  // namespace tutti
