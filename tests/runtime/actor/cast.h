#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/actor/scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"

namespace tutti {

// Messages that the tests pass around.
struct Number {
  static constexpr const char* kName = "Number";
  int64_t value = 0;
};
struct Permit {
  static constexpr const char* kName = "Permit";
  static constexpr bool kReserved = true;
  int64_t value = 0;
};
struct Question {
  static constexpr const char* kName = "Question";
  int64_t value = 0;
};
struct Answer {
  static constexpr const char* kName = "Answer";
  static constexpr bool kReserved = true;
  int64_t value = 0;
};

// Answers each Question with its value plus one, until it gets the Number that ends it.
inline Script oracle() {
  return {.receive = [](Context& context, Envelope& envelope) {
    if (auto* question = envelope.message.get_if<Question>()) {
      context.reply(envelope, Answer{question->value + 1});
    } else {
      context.stop();
    }
  }};
}

// The message that run() throws, or "" if it returns.
inline std::string run_error(Scheduler& scheduler) {
  try {
    scheduler.run();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace tutti
