#include "training/loggers/progress.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "runtime/printable.h"

namespace tutti {
namespace {

constexpr Nanoseconds kShowEvery = std::chrono::seconds(2);
constexpr Nanoseconds kShowEveryOnTerminal = std::chrono::milliseconds(100);

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
  return "  " + name + " " + printable(value) + "\n";
}

}  // namespace

Progress::Progress(Options options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), out_(options_.out) {}

void Progress::open(const LogStart& start) {
  start_ = start;
  last_step_ = start.step;
  if (start.checkpoint.empty()) return;
  out_.print("resumes after step " + std::to_string(start.step) + ", from " + start.checkpoint + "\n");
}

void Progress::log_step(const StepReport& report, const LogTime& time) {
  samples_ = static_cast<double>(time.at.sample) + report.samples;
  last_ = report;
  last_step_ = time.step;
  at_ = time.at;
  const bool first = !std::exchange(any_, true);
  if (first) first_step_ = clock_.now();
  if (first) first_samples_ = samples_;
  if (first || should_show()) show();
}

void Progress::log_evaluation(const LoggedMetrics& metrics, const LogTime&) {
  evaluated_ = metrics;
  if (!options_.lines) return;
  std::ostringstream line;
  line << (any_ ? place() : "evaluation");
  for (const auto& [name, value] : evaluated_) line << "  " << display_name(name) << ' ' << value;
  out_.print(line.str() + "\n");
}

bool Progress::should_show() const {
  const bool terminal = out_.on_terminal();
  if (!terminal && options_.show_every_steps > 0) return last_step_ % options_.show_every_steps == 0;
  return clock_.now() - shown_ >= (terminal ? kShowEveryOnTerminal : kShowEvery);
}

double Progress::samples_per_s() const {
  const double elapsed = seconds(shown_ - first_step_);
  return elapsed > 0 ? (samples_ - first_samples_) / elapsed : 0;
}

void Progress::show() {
  if (!out_.shown() || !options_.lines) return;
  shown_ = clock_.now();
  shown_step_ = last_step_;
  const auto columns = static_cast<std::size_t>(out_.columns());
  out_.print(columns > 0 ? line().substr(0, columns - 1) : line() + "\n");
}

// The rate is not known before the second step.
std::string Progress::line() const {
  const double done = last_.progress, rate = samples_per_s();
  const double left = done > 0 ? seconds(shown_ - first_step_) * (1 - done) / done : 0;
  std::ostringstream line;
  line << place() << "  " << std::lround(100 * done) << "%  loss " << static_cast<float>(last_.loss);
  if (rate > 0) line << "  " << duration_text(left) << " left  " << std::lround(rate) << " samples/s";
  line << "  lr " << static_cast<float>(last_.lr);
  return line.str();
}

std::string Progress::place() const {
  const int64_t steps = start_.dataloader_len;
  int64_t epochs = 0;  // unknown
  if (start_.max_duration.unit() == TimeUnit::kEpoch) epochs = start_.max_duration.count();
  if (start_.max_duration.unit() == TimeUnit::kBatch && steps > 0)
    epochs = (start_.max_duration.count() + steps - 1) / steps;
  const auto of = [](int64_t all) { return all > 0 ? "/" + std::to_string(all) : std::string(); };
  return "epoch " + std::to_string(at_.epoch + 1) + of(epochs) + "  step " +
         std::to_string(at_.batch_in_epoch + 1) + of(steps);
}

// "MulticlassAccuracy"; with several evaluators also the label.
std::string Progress::display_name(const std::string& metric) const {
  const auto slash = metric.rfind('/');
  const std::string_view label = std::string_view(metric).substr(0, slash + 1);
  const bool one = std::ranges::all_of(evaluated_, [&](const auto& other) {
    return other.first.starts_with(label) && other.first.find('/', label.size()) == std::string::npos;
  });
  const std::size_t prefix = metric.find('/') + 1;
  return metric.substr(one ? slash + 1 : prefix);
}

void Progress::print_table() {
  std::string text = "\n" + table_row("steps", std::to_string(last_step_));
  if (any_) text += table_row("loss", number_text("%.6g", static_cast<float>(last_.loss)));
  for (const auto& [name, value] : evaluated_)
    text += table_row(display_name(name), number_text("%.4f", value));
  if (samples_per_s() > 0) text += table_row("samples/s", number_text("%.0f", samples_per_s()));
  const std::string& run = start_.run_dir;
  text += table_row("checkpoint", options_.newest_checkpoint) + table_row("metrics", run + "/metrics.jsonl") +
          table_row("logs", run + "/log");
  if (!closing_text_.empty()) text += "\n" + closing_text_ + "\n";
  out_.print_last(text);
}

bool Progress::finish(bool late) {
  if (!std::exchange(finishing_, true)) {
    if (shown_step_ != last_step_ && any_) show();
    if (any_ && options_.lines && out_.on_terminal()) out_.print(line() + "\n");  // it stays
    print_table();
  }
  out_.flush();
  if (out_.busy() && !late) return false;
  if (const std::string trouble = out_.trouble(); !trouble.empty()) options_.warn("progress: " + trouble);
  return true;
}

}  // namespace tutti
