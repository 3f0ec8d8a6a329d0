#include "actors/logging/reporter.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "io/formats/json_line.h"
#include "runtime/error.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr Nanoseconds kShowEvery = std::chrono::seconds(2);
constexpr Nanoseconds kShowEveryOnTerminal = std::chrono::milliseconds(100);
constexpr Nanoseconds kLastWordsWithin = std::chrono::seconds(1);
constexpr Nanoseconds kReaderMayGoOn = std::chrono::milliseconds(10);

std::string duration_text(double s) {
  const auto whole = static_cast<int64_t>(std::lround(s));
  char text[48];
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(whole / 60), static_cast<int>(whole % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld:%02d:%02d", static_cast<long long>(whole / 3600),
                  static_cast<int>(whole / 60 % 60), static_cast<int>(whole % 60));
  }
  return text;
}

std::string number_text(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string table_row(std::string name, const std::string& value) {
  name.resize(std::max<std::size_t>(name.size(), 22), ' ');
  return "  " + name + " " + value + "\n";
}

Reporter::Options with_warn(Reporter::Options options) {
  if (!options.warn) options.warn = print_warning;
  return options;
}

bool is_of_evaluation(const std::string& line) {
  return line.find("\"metrics/") != std::string::npos && line.find("\"lr\": ") == std::string::npos;
}

// A value that an evaluation after a step came to.
std::string finding(int64_t step, const std::string& name, double value) {
  char text[64];
  std::snprintf(text, sizeof text, " %.17g", std::isnan(value) ? std::abs(value) : value);
  return std::to_string(step) + " " + name + text;
}

int64_t step_of(const std::string& line) { return json_integer(line, "step", -1); }

}  // namespace

Reporter::Reporter(Options options, Disk& disk, Clock& clock)
    : options_(with_warn(std::move(options))),
      clock_(clock),
      out_(options_.out),
      metrics_(disk, options_.run_dir + "/metrics.jsonl", step_of, options_.warn) {}

void Reporter::receive(Context& context, Envelope& envelope) {
  Message& message = envelope.message;
  if (auto* done = message.get_if<StepDone>()) {
    step(context, *done);
  } else if (auto* evaluated = message.get_if<EvalDone>()) {
    evaluation(context, *evaluated);
  } else if (auto* logged = message.get_if<MetricsLogged>()) {
    log(*logged);
  } else if (auto* resumed = message.get_if<ReportFrom>()) {
    open(*resumed);
  } else if (auto* sample = message.get_if<TextSample>()) {
    sample_ = sample->text;
  } else if (message.get_if<ReportsSent>()) {
    context.reply(envelope, ReportsTaken{});
  } else if (message.get_if<WriteMetrics>()) {
    metrics_.flush(/*sync=*/true);
    context.reply(envelope, MetricsWritten{});
  } else if (message.get_if<Stop>()) {
    if (shown_step_ != last_.step && steps_ > 0) show(context, last_, true);
    metrics_.finish();
    table();
    show_rest(context);
    context.stop();
  } else {
    TUTTI_ASSERT(false, message.name());
  }
}

std::optional<TimePoint> Reporter::idle(Context& context) {
  metrics_.flush();
  out_.flush();
  if (out_.busy()) return context.now() + kReaderMayGoOn;
  return std::nullopt;
}

void Reporter::resume(int64_t step) {
  metrics_.resume(step, [&](const std::string& line) {
    if (!is_of_evaluation(line) || step_of(line) != step) return;
    for (const auto& key : json_keys(line))
      if (key.starts_with("metrics/")) evaluated_before_.insert(finding(step, key, json_number(line, key)));
  });
}

// A resumed run goes on where its checkpoint was: the lines of steps that are done again are dropped. One
// that starts afresh, or from another run's checkpoint, keeps an earlier run's beside its own, and so does
// one that cannot read them.
void Reporter::open(const ReportFrom& from) {
  try {
    if (from.own)
      resume(from.step);
    else
      metrics_.begin();
  } catch (const std::exception& error) {
    metrics_.begin();
    options_.warn("metrics.jsonl begins anew, beside the earlier one: " + std::string(error.what()));
  }
  last_.step = from.step;
  if (from.checkpoint.empty()) return;
  out_.print("resumes after step " + std::to_string(from.step) + ", from " + from.checkpoint + "\n");
}

void Reporter::step(Context& context, const StepDone& done) {
  if (steps_++ == 0)
    first_step_ = context.now();
  else
    samples_ += done.samples;
  last_ = done;
  JsonFields fields = {{"step", done.step},
                       {"epoch", done.epoch},
                       {"loss", done.loss},
                       {"lr", done.lr},
                       {"step_ms", static_cast<float>(done.step_ms)},
                       {"samples_per_s", static_cast<float>(done.samples_per_s)},
                       {"grad_accum", static_cast<int64_t>(done.grad_accum)},
                       {"memory_peak_mb", static_cast<float>(done.memory_peak_mb)}};
  for (const auto& [name, value] : done.metrics) fields.emplace_back(name, value);
  if (steps_ == 1) fields.emplace_back("since_start_s", since_start_s());
  metrics_.append(json_line(fields));
  if (steps_ == 1) metrics_.flush();
  show(context, done, steps_ == 1);
}

void Reporter::evaluation(Context& context, const EvalDone& done) {
  last_eval_ = done;
  JsonFields fields = {{"step", done.step}, {"epoch", done.epoch}};
  const std::size_t times = fields.size();
  for (const auto& [name, value] : done.metrics)
    if (!evaluated_before_.contains(finding(done.step, name, value))) fields.emplace_back(name, value);
  if (fields.size() > times || done.metrics.empty()) metrics_.append(json_line(fields));
  if (steps_ > 0) show(context, last_, true);
}

void Reporter::log(const MetricsLogged& logged) {
  JsonFields fields = {{"step", logged.step}, {"epoch", logged.epoch}};
  for (const auto& [name, value] : logged.metrics) fields.emplace_back(name, value);
  metrics_.append(json_line(fields));
}

bool Reporter::is_time_to_show(Context& context, int64_t step) const {
  if (!options_.terminal && options_.show_every_steps > 0) return step % options_.show_every_steps == 0;
  return context.now() - shown_ >= (options_.terminal ? kShowEveryOnTerminal : kShowEvery);
}

void Reporter::show(Context& context, const StepDone& done, bool now) {
  if (!out_.shown() || !options_.progress) return;
  if (!now && !is_time_to_show(context, done.step)) return;
  shown_ = context.now();
  shown_step_ = done.step;
  const double elapsed = seconds(shown_ - first_step_);
  const double rate = elapsed > 0 ? samples_ / elapsed : 0;
  const double left = done.progress > 0 ? elapsed * (1 - done.progress) / done.progress : 0;
  std::ostringstream line;
  line << (options_.terminal ? "\r\033[K" : "") << "epoch " << done.epoch << "  step " << done.step << "  "
       << std::lround(100 * done.progress) << "%  loss " << done.loss << "  " << std::lround(rate)
       << " samples/s  " << duration_text(left) << " left";
  for (const auto& [name, value] : last_eval_.metrics) line << "  " << shown(name) << ' ' << value;
  if (!options_.terminal) line << '\n';
  out_.print(line.str());
}

// "MulticlassAccuracy", or with its evaluator's label where there are several.
std::string Reporter::shown(const std::string& metric) const {
  const auto slash = metric.rfind('/');
  const std::string_view label = std::string_view(metric).substr(0, slash + 1);
  const bool one = std::ranges::all_of(last_eval_.metrics, [&](const auto& other) {
    return other.first.starts_with(label) && other.first.find('/', label.size()) == std::string::npos;
  });
  const std::size_t family = metric.find('/') + 1;
  return metric.substr(one ? slash + 1 : family);
}

void Reporter::table() {
  const double elapsed = seconds(shown_ - first_step_);
  std::string text = (options_.terminal ? "\n\n" : "\n") + table_row("steps", std::to_string(last_.step));
  if (steps_ > 0) text += table_row("loss", number_text("%.6g", last_.loss));
  for (const auto& [name, value] : last_eval_.metrics)
    text += table_row(shown(name), number_text("%.4f", value));
  if (steps_ > 1 && elapsed > 0) text += table_row("samples/s", number_text("%.0f", samples_ / elapsed));
  text += table_row("checkpoint", options_.newest_checkpoint) + table_row("metrics", metrics_.path()) +
          table_row("logs", options_.run_dir + "/log");
  if (!sample_.empty()) text += "\n" + sample_ + "\n";
  out_.print_last(text);
}

void Reporter::show_rest(Context& context) {
  const TimePoint until = context.now() + kLastWordsWithin;
  for (out_.flush(); out_.busy() && context.now() < until; out_.flush()) context.sleep(kReaderMayGoOn);
  const std::string trouble = out_.trouble();
  if (!trouble.empty()) options_.warn("progress: " + trouble);
}

double Reporter::since_start_s() const { return 1e-3 * clock_.unix_ms() - options_.process_started_s; }

}  // namespace tutti
