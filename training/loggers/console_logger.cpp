#include "training/loggers/console_logger.h"

#include <algorithm>
#include <cmath>

#include "runtime/printable.h"
#include "training/loggers/json_lines.h"

namespace tutti {
namespace {

// Composer's format: four decimals; scientific for very small numbers.
std::string value_text(double value) {
  char text[40];
  const bool whole = std::nearbyint(value) == value && std::abs(value) < 1e15;
  const char* format = whole ? "%.0f" : value > 0 && value < 1e-3 ? "%.4E" : "%.4f";
  std::snprintf(text, sizeof text, format, value);
  return text;
}

bool is_evaluation_metric(const std::string& name) {
  return name.starts_with("metrics/") && !name.starts_with("metrics/train/");
}

std::string counted(const std::string& what, int64_t number, int64_t of) {
  return "[" + what + "=" + std::to_string(number) + "/" + std::to_string(of) + "]";
}

// Composer's names of the units of max_duration.
std::string unit_text(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::kSample:
      return "sample";
    case TimeUnit::kToken:
      return "token";
    case TimeUnit::kSecond:
      return "second";
    default:
      return "batch";
  }
}

}  // namespace

ConsoleLogger::ConsoleLogger(const Time& log_interval, std::FILE* out, bool log_traces, Warn warn)
    : log_interval_(log_interval), out_(out), log_traces_(log_traces), warn_(std::move(warn)) {}

void ConsoleLogger::open(const LogStart& start) {
  start_ = start;
  now_ = start.at;
  max_duration_ = start.max_duration;
  every_.emplace(log_interval_, start.max_duration, start.dataloader_len);
}

void ConsoleLogger::log_step(const StepReport& report, const LogTime& time) {
  max_duration_ = report.max_duration;
  LoggerDestination::log_step(report, time);
}

void ConsoleLogger::log_hyperparameters(const LoggedHyperparameters& all, const LogTime&) {
  for (const auto& evaluator_metric : all) {
    const std::string json = json_of(LoggedHyperparameters{evaluator_metric});
    out_.print(terminal_text(json.substr(1, json.size() - 2) + "\n"));
  }
}

void ConsoleLogger::set_latest(LoggedMetrics& metrics, const std::string& name, double value) {
  const auto known =
      std::find_if(metrics.begin(), metrics.end(), [&](auto& one) { return one.first == name; });
  if (known == metrics.end())
    metrics.emplace_back(name, value);
  else
    known->second = value;
}

void ConsoleLogger::log_metrics(const LoggedMetrics& metrics, const LogTime&) {
  for (const auto& [name, value] : metrics)
    set_latest(is_evaluation_metric(name) ? eval_ : train_, name, value);
}

void ConsoleLogger::log_traces(const LoggedTraces& traces, const LogTime&) {
  if (!log_traces_) return;
  for (const auto& [name, ran] : traces) set_latest(train_, name, ran);
}

void ConsoleLogger::log_text(const LoggedText& text, const LogTime&) {
  out_.print(terminal_text(text.name + ": " + text.text + "\n"));
}

void ConsoleLogger::log_table(const LoggedTable& table, const LogTime&) {
  tables_[table.name] = json_of(table);
}

void ConsoleLogger::step_end(const LogTime& time) {
  const Timestamp before = now_;
  now_ = time.at;
  if (every_->at_batch_end(before, now_) || every_->at_epoch_end(before, now_) ||
      every_->at_iteration_end(before, now_))
    print_train();
  print(eval_, "Eval");
}

bool ConsoleLogger::finish(bool late) {
  print_train();
  print(eval_, "Eval");
  out_.flush();
  if (out_.busy() && !late) return false;
  if (const std::string trouble = out_.trouble(); !trouble.empty() && warn_)
    warn_("logger console: " + trouble);
  return true;
}

void ConsoleLogger::print_train() {
  std::string tables;
  for (const auto& [name, json] : std::exchange(tables_, {}))
    tables += "\t Train " + name + ": " + json + "\n";
  print(train_, "Train", tables);
}

// A single write, so that other output does not come in between.
void ConsoleLogger::print(LoggedMetrics& metrics, const char* prefix, const std::string& more) {
  const LoggedMetrics printed = std::exchange(metrics, {});
  if (printed.empty() && more.empty()) return;
  std::string text = progress() + ":\n";
  for (const auto& [name, value] : printed)
    text += "\t " + std::string(prefix) + " " + name + ": " + value_text(value) + "\n";
  out_.print(terminal_text(text + more));
}

std::string ConsoleLogger::progress() const {
  const Time& whole = max_duration_;
  if (whole.unit() != TimeUnit::kEpoch)
    return counted(unit_text(whole.unit()), now_.get(whole.unit()).count(), whole.count());
  const bool ended = now_.batch_in_epoch == 0 && now_.epoch > 0;  // the epoch that just ended is shown
  return counted("epoch", ended ? now_.epoch : now_.epoch + 1, whole.count()) +
         counted("batch", ended ? start_.dataloader_len : now_.batch_in_epoch, start_.dataloader_len);
}

}  // namespace tutti
