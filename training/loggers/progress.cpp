#include "training/loggers/progress.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "io/formats/matrix_metrics.h"
#include "io/run_paths.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr Nanoseconds kShowEvery = std::chrono::seconds(2);
constexpr Nanoseconds kShowEveryOnTerminal = std::chrono::milliseconds(100);
constexpr std::size_t kMostChanges = 8;  // of the recipe, in the opening
constexpr const char* kBetweenFields = "  ";

std::string counted(int64_t count, const char* noun) {
  return std::to_string(count) + ' ' + noun + (count == 1 ? "" : "s");
}

// A text of several lines, the later ones further to the right.
std::string indented(std::string text) {
  for (std::size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
    text.insert(at + 1, 4, ' ');
  return text;
}

std::string start_text(const LogStart& start) {
  if (start.checkpoint.empty()) return "starts afresh";
  if (start.step == 0) return "starts with the weights of " + start.checkpoint;
  return "resumes after step " + std::to_string(start.step) + ", from " + start.checkpoint;
}

std::string changes_text(const std::vector<std::string>& changes) {
  std::string text = "the recipe has changed since:";
  for (std::size_t i = 0; i < std::min(kMostChanges, changes.size()); ++i) text += "\n  " + changes[i];
  if (changes.size() > kMostChanges)
    text += "\n  and " + counted(std::ssize(changes) - kMostChanges, "other key");
  return text + "\n";
}

// Fields of one line, or of several lines where a terminal has too few columns; 0: no terminal. Later lines
// are indented.
std::string wrapped(const std::vector<std::string>& fields, int columns) {
  std::string text, line;
  for (const std::string& field : fields) {
    const std::string more = (line.empty() ? "" : kBetweenFields) + field;
    if (columns == 0 || line.empty() || line.size() + more.size() < static_cast<std::size_t>(columns)) {
      line += more;
    } else {
      text += line + "\n";
      line = "    " + field;
    }
  }
  return text + line;
}

}  // namespace

Progress::Progress(Options options, const Clock& clock)
    : options_(std::move(options)),
      clock_(clock),
      out_(options_.out),
      colors_(options_.out && shows_colors(::fileno(options_.out))) {
  options_.lines = options_.lines && !options_.json;
}

void Progress::open(const LogStart& start) {
  result_.start = start;
  if (start.resumes) result_.metrics = RunMetrics::read(start.run_dir + "/" + kMetricsFile, start.step);
  last_step_ = start.step;
  opened_ = shown_ = clock_.now();
  write_result("");  // removes that of an earlier attempt
  if (!options_.json) show_opening();
}

void Progress::show_opening() {
  const LogStart& start = result_.start;
  const Facts& facts = options_.facts;
  std::ostringstream text;
  text << styled(colors_, TextStyle::kBold, printable(facts.model)) << ": " << grouped(start.parameters)
       << " parameters, " << counted(start.world, "rank") << " x " << counted(facts.threads, "thread")
       << " on " << counted(facts.hosts, "host") << ", " << facts.device << ", seed " << facts.seed << '\n'
       << printable(start_text(start) + ", in " + start.run_dir) << '\n';
  if (!start.recipe_changes.empty())
    text << styled(colors_, TextStyle::kYellow, "note: ") << printable(changes_text(start.recipe_changes));
  out_.print(text.str());
}

void Progress::log_step(const StepReport& report, const LogTime& time) {
  samples_ = static_cast<double>(time.at.sample) + report.samples;
  last_step_ = time.step;
  at_ = time.at;
  data_wait_.add(report);
  const bool first = !result_.last;
  result_.last = report;
  if (first) first_step_ = clock_.now();
  if (first) first_samples_ = samples_;
  if (first) first_progress_ = report.progress;
  if (first || should_show()) show();
}

void Progress::log_evaluation(const LoggedMetrics& metrics, const LogTime& time) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, double>> values;
  for (const auto& [name, value] : metrics) {
    names.push_back(evaluated_name(name));
    values.emplace_back(names.back(), value);
    result_.metrics.add_evaluation(names.back(), value, time.at.batch);
  }
  if (!options_.lines) return;
  std::vector<std::string> fields = {result_.last ? place() : "evaluation"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (matrix_cell(names[i])) continue;
    std::ostringstream field;
    field << printable(display_name(names[i], names)) << ' ' << without_nan_sign(metrics[i].second);
    fields.push_back(field.str());
  }
  for (const MetricMatrix& matrix : metric_matrices(values))
    fields.push_back(printable(display_name(matrix.name, names)) + ' ' + matrix.text());
  out_.print(styled(colors_, TextStyle::kGreen, wrapped(fields, out_.columns())) + "\n");
}

void Progress::log_table(const LoggedTable& table, const LogTime&) {
  if (!options_.lines || !options_.tables) return;
  std::string text =
      styled(colors_, TextStyle::kGreen, place() + kBetweenFields + on_one_line(table.name)) + "\n";
  for (const auto& row : table.rows)
    for (std::size_t c = 0; c < row.size(); ++c)
      text += "  " + on_one_line(table.columns[c]) + ": " + printable(indented(row[c])) + "\n";
  out_.print(text);
}

void Progress::log_training_end(const TrainingEnded& ended, const LogTime& time) {
  result_.ended = ended;
  result_.at = time.at;
  result_.wall_s = seconds(clock_.now() - opened_);
}

bool Progress::should_show() const {
  const bool terminal = out_.on_terminal();
  if (!terminal && result_.last->progress >= 1) return false;  // at the end, below the last evaluation
  if (!terminal && options_.show_every_steps > 0) return last_step_ % options_.show_every_steps == 0;
  return clock_.now() - shown_ >= (terminal ? kShowEveryOnTerminal : kShowEvery);
}

double Progress::samples_per_s() const {
  const double elapsed = seconds(shown_ - first_step_);
  return elapsed > 0 ? (samples_ - first_samples_) / elapsed : 0;
}

// By the speed since this process's first step.
double Progress::left_s() const {
  const double done = std::min(1.0, result_.last->progress), so_far = done - first_progress_;
  return so_far > 0 ? seconds(shown_ - first_step_) * (1 - done) / so_far : 0;
}

void Progress::show() {
  shown_ = clock_.now();
  if (!out_.shown() || !options_.lines) return;
  shown_step_ = last_step_;
  const auto columns = static_cast<std::size_t>(out_.columns());
  out_.print(columns > 0 ? line_within(columns - 1) : line() + "\n");
  data_wait_ = {};
}

// A field that does not fit is left out as a whole; a later one may still fit.
std::string Progress::line_within(std::size_t columns) const {
  std::string line;
  for (const std::string& field : fields()) {
    const std::string more = (line.empty() ? "" : kBetweenFields) + field;
    if (line.size() + more.size() <= columns) line += more;
  }
  return line;
}

std::string Progress::line() const { return line_within(std::string::npos); }

// The rate is not known before the second step.
std::vector<std::string> Progress::fields() const {
  const StepReport& last = *result_.last;
  const Facts& facts = options_.facts;
  const double done = std::min(1.0, last.progress), rate = samples_per_s();
  const auto number = [](const char* name, double value) {
    return formatted("%s %g", name, static_cast<double>(static_cast<float>(value)));
  };
  std::vector<std::string> fields = place_fields();
  fields.push_back(formatted("%ld%%", std::lround(100 * done)));
  fields.push_back(number("loss", without_nan_sign(last.loss)));
  if (rate > 0) fields.push_back(duration_text(left_s()) + " left");
  if (rate > 0) fields.push_back(rate_text(rate) + " samples/s");
  fields.push_back(number("lr", last.lr));
  if (const std::string wait = data_wait_.text(facts.num_workers, facts.cores); !wait.empty())
    fields.push_back(wait);
  return fields;
}

std::string Progress::place() const {
  const std::vector<std::string> fields = place_fields();
  return fields[0] + kBetweenFields + fields[1];
}

std::vector<std::string> Progress::place_fields() const {
  const Time& whole = result_.last ? result_.last->max_duration : result_.start.max_duration;
  const int64_t steps = result_.start.dataloader_len;
  int64_t epochs = 0;  // unknown
  if (whole.unit() == TimeUnit::kEpoch) epochs = whole.count();
  if (whole.unit() == TimeUnit::kBatch && steps > 0) epochs = (whole.count() + steps - 1) / steps;
  const auto of = [](int64_t all) { return all > 0 ? "/" + std::to_string(all) : std::string(); };
  return {"epoch " + std::to_string(at_.epoch + 1) + of(epochs),
          "step " + std::to_string(at_.batch_in_epoch + 1) + of(steps)};
}

void Progress::write_result(const std::string& json) {
  if (options_.disk) tutti::write_result(*options_.disk, result_.start.run_dir, json, options_.warn);
}

void Progress::show_result() {
  if (options_.newest_checkpoint) result_.checkpoint = options_.newest_checkpoint();
  result_.samples_per_s = samples_per_s();
  write_result(result_.json());
  if (options_.json) return out_.print_last(result_.json() + "\n");
  std::string text = "\n";
  for (const auto& [name, value] : result_.rows()) {
    std::string label = printable(name);
    label.resize(std::max<std::size_t>(label.size(), 22), ' ');
    text += "  " + styled(colors_, TextStyle::kDim, label) + " " + printable(value) + "\n";
  }
  if (!closing_text_.empty()) text += "\n" + terminal_text(closing_text_) + "\n";
  out_.print_last(text);
}

bool Progress::finish(bool late) {
  if (!std::exchange(finishing_, true)) {
    const bool any = result_.last.has_value();
    if (shown_step_ != last_step_ && any) show();
    if (any && options_.lines && out_.on_terminal()) out_.print(line() + "\n");  // it stays
    show_result();
  }
  out_.flush();
  if (out_.busy() && !late) return false;
  if (const std::string trouble = out_.trouble(); !trouble.empty()) options_.warn("progress: " + trouble);
  return true;
}

}  // namespace tutti
