#include "runtime/actor/delivery_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "runtime/actor/token_scheduler.h"
#include "tests/runtime/actor/cast.h"

namespace tutti {
namespace {

struct Signal {
  static constexpr const char* kName = "Signal";
  static constexpr bool kReserved = true;
};
struct Tick {
  static constexpr const char* kName = "Tick";
  static constexpr bool kIncidental = true;
};

// The lines of one rank. Signals come from outside.
class Lines final : public DeliveryScript {
 public:
  explicit Lines(std::deque<Line> lines) : lines_(std::move(lines)) {}
  const Line* next(int) override { return lines_.empty() ? nullptr : &lines_.front(); }
  void advance(int) override { lines_.pop_front(); }
  std::optional<Message> from_outside(int) override {
    if (lines_.front().message != Signal::kName) return std::nullopt;
    return Message(Signal{});
  }
  std::size_t left() const { return lines_.size(); }

 private:
  std::deque<Line> lines_;
};

// Two senders, of three numbers and some ticks each, and a reader that ends with the last number.
struct Outcome {
  std::vector<std::string> read;
  int ticks = 0;
};
Outcome play_lines(Lines& lines, uint64_t seed, int numbers) {
  Outcome outcome;
  TokenScheduler scheduler({.seed = seed, .on_switch = {}, .script = &lines});
  const ActorId reader = scheduler.reserve("reader", 0);
  const ActorId senders[] = {scheduler.reserve("a", 0), scheduler.reserve("b", 0)};
  play(scheduler, reader, {.receive = [&, numbers](Context& context, Envelope& envelope) mutable {
         if (envelope.message.get_if<Tick>()) {
           ++outcome.ticks;
           return;
         }
         const auto* number = envelope.message.get_if<Number>();
         const std::string from =
             number ? scheduler.name(envelope.from) + std::to_string(number->value) : "!";
         outcome.read.push_back(from);
         if (number && --numbers == 0) context.stop();
       }});
  for (const ActorId sender : senders)
    play(scheduler, sender, {.start = [=](Context& context) {
           for (int i = 0; i < 3; ++i) {
             context.send(reader, Number{i});
             context.send(reader, Tick{});
           }
           context.stop();
         }});
  scheduler.run();
  return outcome;
}

DeliveryScript::Line number_from(const char* sender) { return {"reader", sender, "Number"}; }

TEST(DeliveryScriptTest, MessagesAreTakenInItsOrderWhateverTheSeed) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Lines lines({number_from("b"), number_from("b"), number_from("a"), number_from("b"), number_from("a"),
                 number_from("a")});
    EXPECT_EQ(play_lines(lines, seed, 6).read,
              (std::vector<std::string>{"b0", "b1", "a0", "b2", "a1", "a2"}));
    EXPECT_EQ(lines.left(), 0u);
  }
}

TEST(DeliveryScriptTest, MessagesFromOutsideArriveAtTheirPlaceTheFirstToo) {
  const DeliveryScript::Line signal{"reader", "", "Signal"};
  Lines lines({signal, number_from("a"), number_from("a"), signal, signal, number_from("a")});
  EXPECT_EQ(play_lines(lines, 1, 3).read, (std::vector<std::string>{"!", "a0", "a1", "!", "!", "a2"}));
}

TEST(DeliveryScriptTest, IncidentalMessagesAreFree) {
  Lines lines({number_from("a"), number_from("a"), number_from("a"), number_from("b"), number_from("b"),
               number_from("b")});
  EXPECT_GT(play_lines(lines, 1, 6).ticks, 0);
}

TEST(DeliveryScriptTest, ARunThatCannotComeToTheNextLineIsAborted) {
  Lines lines({number_from("a"), {"reader", "a", "Question"}});
  EXPECT_THROW(play_lines(lines, 1, 6), Aborted);
  EXPECT_EQ(lines.left(), 1u);
}

}  // namespace
}  // namespace tutti
