#include <gtest/gtest.h>

#include <cmath>

#include "recipe/time/time_text.h"
#include "runtime/error.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/golden_json.h"
#include "tests/golden/time_expression.h"

namespace tutti {
namespace {

using nlohmann::json;

class GoldenTime : public testing::Test {
 protected:
  void SetUp() override {
    all_ = golden_json("time.json");
    if (all_.is_null()) GTEST_SKIP() << "no time.json";
  }

  json all_;
};

// JSON has no nan and no inf; Composer's are written as texts. A bool counts as in Python.
double number_in(const json& value) {
  if (value.is_boolean()) return value.get<bool>() ? 1.0 : 0.0;
  return value.is_string() ? python_float(value.get<std::string>()).value() : value.get<double>();
}

void expect_number(double got, const json& want, const std::string& what) {
  const double number = number_in(want);
  EXPECT_TRUE(got == number || (std::isnan(got) && std::isnan(number))) << what << ": " << got;
}

// Composer's Time(True, "ba") keeps its bool, and prints "Trueba"; tutti counts from the start.
std::string text_of(const Time& time, bool is_of_a_bool) {
  return is_of_a_bool ? repr(time.value() != 0.0) + suffix(time.unit()) : time.text();
}

void expect_time(const Time& got, const json& want, const std::string& what) {
  expect_number(got.value(), want.at("value"), what);
  EXPECT_EQ(suffix(got.unit()), want.at("unit")) << what;
  EXPECT_EQ(text_of(got, want.at("value").is_boolean()), want.at("str")) << what;
}

// A bool, a number of its kind, None, or a text; a unit is given by its value or as Python prints it.
void expect_result(const PythonValue& got, const json& want, const std::string& what) {
  if (want.is_boolean()) {
    ASSERT_TRUE(std::holds_alternative<bool>(got)) << what;
    EXPECT_EQ(std::get<bool>(got), want.get<bool>()) << what;
  } else if (want.is_number_integer()) {
    ASSERT_TRUE(std::holds_alternative<int64_t>(got)) << what;
    EXPECT_EQ(std::get<int64_t>(got), want.get<int64_t>()) << what;
  } else if (want.is_number_float()) {
    ASSERT_TRUE(std::holds_alternative<double>(got)) << what;
    EXPECT_EQ(std::get<double>(got), want.get<double>()) << what;
  } else if (want.is_null()) {
    EXPECT_TRUE(std::holds_alternative<std::monostate>(got)) << what;
  } else if (std::holds_alternative<TimeUnit>(got)) {
    EXPECT_TRUE(want == suffix(std::get<TimeUnit>(got)) || want == str(got) || want == repr(got)) << what;
  } else {
    ASSERT_TRUE(want.is_string() && std::holds_alternative<std::string>(got)) << what;
    EXPECT_EQ(std::get<std::string>(got), want.get<std::string>()) << what;
  }
}

// Compares the result of `make`, or its failure, with an entry: a time, another result or an error.
template <class Make>
void expect_entry(const json& entry, const std::string& what, Make make) {
  expect_members(entry, {"string", "expr", "ts", "value", "unit", "str", "result", "error", "message"}, what);
  try {
    const PythonValue got = make();
    EXPECT_FALSE(entry.contains("error")) << what << ": " << repr(got);
    if (entry.contains("error")) return;
    if (entry.contains("result")) return expect_result(got, entry["result"], what);
    ASSERT_TRUE(std::holds_alternative<Time>(got)) << what;
    expect_time(std::get<Time>(got), entry, what);
  } catch (const UserError& error) {
    EXPECT_TRUE(entry.contains("error")) << what << ": " << error.what();
  }
}

// Every entry by itself: one of a form that no test knows fails alone.
template <class Check>
void for_each_entry(const json& section, Check check) {
  for (const json& entry : section) {
    try {
      check(entry);
    } catch (const std::exception& error) {
      ADD_FAILURE() << entry << ": " << error.what();
    }
  }
}

void expect_value(const json& entry, const Timestamp& ts) {
  const std::string expression = entry.at("expr");
  expect_entry(entry, expression, [&] { return evaluate(expression, ts); });
}

const std::map<std::string, int64_t Timestamp::*> kCounts = {
    {"iteration", &Timestamp::iteration},
    {"epoch", &Timestamp::epoch},
    {"batch", &Timestamp::batch},
    {"sample", &Timestamp::sample},
    {"token", &Timestamp::token},
    {"epoch_in_iteration", &Timestamp::epoch_in_iteration},
    {"token_in_iteration", &Timestamp::token_in_iteration},
    {"batch_in_epoch", &Timestamp::batch_in_epoch},
    {"sample_in_epoch", &Timestamp::sample_in_epoch},
    {"token_in_epoch", &Timestamp::token_in_epoch}};

const std::map<std::string, double Timestamp::*> kClocks = {{"total_wct", &Timestamp::total_wct},
                                                            {"iteration_wct", &Timestamp::iteration_wct},
                                                            {"epoch_wct", &Timestamp::epoch_wct},
                                                            {"batch_wct", &Timestamp::batch_wct}};

Timestamp timestamp_of(const json& fields) {
  Timestamp ts;
  for (const auto& [name, value] : fields.items()) {
    if (const auto clock = kClocks.find(name); clock != kClocks.end())
      ts.*clock->second = value;
    else
      ts.*known(kCounts, name, "field of a timestamp") = value;
  }
  return ts;
}

void make_move(Timestamp& now, const json& move) {
  const std::string op = move.at("op");
  for (const auto& [name, value] : move.items()) {
    const bool is_of_batch = name == "samples" || name == "tokens" || name == "duration_s";
    if (name == "op" || name == "state" || (op == "to_next_batch" && is_of_batch)) continue;
    throw std::logic_error("no test knows the argument " + name + " of " + op);
  }
  if (op == "init")
    now = {};
  else if (op == "to_next_batch")
    now.to_next_batch(move.value("samples", 0), move.value("tokens", 0), move.value("duration_s", 0.0));
  else if (op == "to_next_epoch")
    now.to_next_epoch();
  else if (op == "to_next_iteration")
    now.to_next_iteration();
  else
    throw std::logic_error("no test knows the move " + op);
}

TEST_F(GoldenTime, HasNoUnknownSection) {
  expect_sections(all_, {"composer_api", "parse", "arithmetic", "timestamp", "elapsed", "timestamp_compare"},
                  "time.json");
}

TEST_F(GoldenTime, ParsesAsComposerDoes) {
  for_each_entry(all_.value("parse", json::array()), [](const json& entry) {
    const std::string text = entry.at("string");
    expect_entry(entry, '\'' + text + '\'', [&] { return Time::parse_composer(text); });
  });
}

TEST_F(GoldenTime, CountsAsComposerDoes) {
  for_each_entry(all_.value("arithmetic", json::array()), [](const json& entry) { expect_value(entry, {}); });
}

TEST_F(GoldenTime, ComparesTimestampsAsComposerDoes) {
  for_each_entry(all_.value("timestamp_compare", json::array()),
                 [](const json& entry) { expect_value(entry, timestamp_of(entry.at("ts"))); });
}

TEST_F(GoldenTime, WalksAsComposerDoes) {
  Timestamp now;
  for_each_entry(all_.value("timestamp", json::array()), [&](const json& move) {
    make_move(now, move);
    EXPECT_EQ(now, timestamp_of(move.at("state"))) << move;
  });
}

TEST_F(GoldenTime, ElapsedPartIsComposers) {
  for_each_entry(all_.value("elapsed", json::array()), [](const json& entry) {
    expect_members(entry, {"max_duration", "timestamp", "elapsed", "unit", "error", "message"}, entry.dump());
    const Timestamp now = timestamp_of(entry.at("timestamp"));
    const json& max_duration = entry.at("max_duration");
    if (max_duration.is_null()) {
      EXPECT_TRUE(entry.at("elapsed").is_null()) << entry;
      return;
    }
    const auto part = [&] { return elapsed(now, Time::parse_composer(max_duration.get<std::string>())); };
    if (entry.contains("error")) {
      EXPECT_THROW(part(), UserError) << entry;
      return;
    }
    expect_number(part(), entry.at("elapsed"), entry.dump());
    EXPECT_EQ(entry.value("unit", "dur"), "dur") << entry;
  });
}

}  // namespace
}  // namespace tutti
