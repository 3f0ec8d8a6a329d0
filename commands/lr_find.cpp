#include "commands/lr_find.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "analysis/run_folder.h"
#include "commands/local_train.h"
#include "commands/train.h"
#include "io/replaced_file.h"
#include "io/run_paths.h"
#include "recipe/set_key.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/launcher.h"
#include "runtime/printable.h"
#include "runtime/text.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr double kSmoothing = 0.98;  // fastai's
constexpr double kDiverged = 4;      // times the least smoothed loss
constexpr std::size_t kPlotColumns = 64, kPlotLines = 14;
constexpr double kAboveStart = 0.5;       // of the fall of the loss; what is higher is drawn as ^
constexpr std::size_t kLeastPoints = 10;  // for a suggestion

using Points = std::vector<RangePoint>;

// Sets the rate of each step, and keeps the losses.
class RangeTest final : public Callback {
 public:
  RangeTest(const LrFindOptions& options, std::shared_ptr<Points> points)
      : options_(options), points_(std::move(points)) {}

  std::string name() const override { return "RangeTest"; }
  void fit_start(State& state, Logger&) override { state.next_lr = rate(0); }
  void batch_end(State& state, Logger& logger) override {
    const auto step = static_cast<double>(points_->size() + 1);
    mean_ = kSmoothing * mean_ + (1 - kSmoothing) * state.train_loss;
    const double smoothed = mean_ / (1 - std::pow(kSmoothing, step));
    points_->push_back({rate(points_->size()), state.train_loss, smoothed});
    logger.log_metrics({{"lr_find/smoothed_loss", smoothed}});
    least_ = std::min(least_, smoothed);
    const bool diverges = !std::isfinite(smoothed) || smoothed > kDiverged * least_;
    if (diverges || std::ssize(*points_) >= options_.steps)
      state.stop_training();
    else
      state.next_lr = rate(points_->size());
  }

 private:
  double rate(std::size_t step) const {
    const double share = static_cast<double>(step) / std::max(1, options_.steps - 1);
    return options_.first * std::pow(options_.last / options_.first, share);
  }

  const LrFindOptions options_;
  std::shared_ptr<Points> points_;
  double mean_ = 0, least_ = INFINITY;
};

// No evaluations, no callbacks and loggers but our own, and a checkpoint of nothing, which is removed.
Setting shortened(Setting recipe) {
  set_key(*recipe.find("journal"), "level", std::string("off"));
  set_key(*recipe.find("train"), "eval_interval", std::string("0ba"));
  set_key(*recipe.find("train"), "stop_at", std::string("0ba"));
  set_key(*recipe.find("train"), "progress_bar", false);
  Setting& checkpoint = *recipe.find("checkpoint");
  set_key(checkpoint, "interval", std::string("0ba"));
  set_key(checkpoint, "save_ignore_keys", Setting::Array{Setting(std::string("*"), "", {})});
  set_key(checkpoint, "autoresume", false);
  for (const char* absent : {"save_folder", "best"}) set_key(checkpoint, absent, std::monostate());
  for (const char* list : {"loggers", "callbacks", "evaluators"}) set_key(recipe, list, Setting::Array());
  return recipe;
}

std::string lr_text(double lr) { return formatted("%.2g", lr); }

void print_result(const Points& points, const LrFindOptions& options, const std::string& run_dir) {
  const bool all = std::ssize(points) >= options.steps;
  std::string text =
      std::to_string(points.size()) + " steps, learning rates " + lr_text(options.first) + " to " +
      (points.empty() ? "-" : lr_text(points.back().lr)) +
      (all ? "; the loss did not diverge\n\n" : "; then the loss diverged, or the run was over\n\n");
  text += range_plot(points);
  const SuggestedRates rates = suggested_rates(points);
  if (rates.steepest == 0)
    text += "\nno suggestion: the loss does not fall, or there are fewer than 10 steps before it diverges\n";
  else
    text += "\nsuggestions\n  steepest descent     " + lr_text(rates.steepest) + "\n  least loss / 10      " +
            lr_text(rates.tenth_of_least) +
            "\n  --set optimizer.lr=" + lr_text(std::min(rates.steepest, rates.tenth_of_least)) + "\n";
  print_text(text + "\nas a page: tutti report " + on_one_line(run_dir) + '\n');
}

}  // namespace

SuggestedRates suggested_rates(const Points& points) {
  const auto usable =
      std::ranges::count_if(points, [](const auto& point) { return std::isfinite(point.smoothed); });
  if (usable < static_cast<int64_t>(kLeastPoints)) return {};
  const auto least = std::ranges::min_element(
      points, [](const auto& a, const auto& b) { return a.smoothed < b.smoothed || std::isnan(b.smoothed); });
  double steepest = 0, fall = 0;
  for (auto point = points.begin() + 1; point < least; ++point) {
    const double slope = (point + 1)->smoothed - (point - 1)->smoothed;  // rates have equal logarithmic steps
    if (slope < fall) {
      fall = slope;
      steepest = point->lr;
    }
  }
  return steepest == 0 ? SuggestedRates() : SuggestedRates{steepest, least->lr / 10};
}

std::string range_plot(const Points& points) {
  Points shown;
  std::ranges::copy_if(points, std::back_inserter(shown),
                       [](const auto& p) { return std::isfinite(p.smoothed); });
  if (shown.empty()) return "";
  const auto [low, high] = std::ranges::minmax(shown, {}, &RangePoint::smoothed);
  const double fall = shown.front().smoothed - low.smoothed;
  const double top =
      fall > 0 ? std::min(high.smoothed, shown.front().smoothed + kAboveStart * fall) : high.smoothed;
  const double span = top > low.smoothed ? top - low.smoothed : 1;
  std::vector<std::string> lines(kPlotLines, std::string(kPlotColumns, ' '));
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t column = shown.size() == 1 ? 0 : i * (kPlotColumns - 1) / (shown.size() - 1);
    const double share = std::max(0.0, (top - shown[i].smoothed) / span);
    lines[static_cast<std::size_t>(std::lround(share * (kPlotLines - 1)))][column] =
        shown[i].smoothed > top ? '^' : '*';
  }
  std::string text;
  for (std::size_t line = 0; line < kPlotLines; ++line) {
    const bool labelled = line == 0 || line + 1 == kPlotLines;
    const double value = line == 0 ? top : low.smoothed;
    text += (labelled ? formatted("%9.4g", value) : std::string(9, ' ')) + " |" +
            lines[line].substr(0, lines[line].find_last_not_of(' ') + 1) + '\n';
  }
  text += std::string(10, ' ') + '+' + std::string(kPlotColumns, '-') + '\n';
  const std::string first = lr_text(shown.front().lr), last = lr_text(shown.back().lr);
  const std::string label = "learning rate (smoothed loss above)";
  const std::size_t room = kPlotColumns - first.size() - last.size() - label.size();
  return text + std::string(11, ' ') + first + std::string(room / 2, ' ') + label +
         std::string(room - room / 2, ' ') + last + '\n';
}

// A range test may take the place of another, also of one that was killed.
void take_folder(Disk& disk, const std::string& run_dir) {
  const bool is_of_others = disk.exists(run_dir + "/checkpoints") ||
                            disk.exists(run_dir + '/' + kRecipeFile) || is_sweep_folder(run_dir) ||
                            !stage_runs(run_dir).empty();
  if (is_of_others && !is_range_test(run_dir))
    throw UserError({run_dir}, "there is a run in it; give the range test a --run-dir of its own");
  disk.remove_all(run_dir + "/checkpoints");
  disk.make_folders(run_dir);
  replace_file(disk, run_dir + '/' + kRangeTestFile, "");
}

int find_lr(const Setting& recipe, const LrFindOptions& options) {
  const std::string run_dir =
      options.run_dir.empty() ? "runs/" + recipe.at("run_name").text() + "-lr-find" : options.run_dir;
  if (options.first >= options.last)
    throw UserError("--first " + lr_text(options.first) + ": expected less than --last " +
                    lr_text(options.last));
  const bool leads = launched_rank().value_or(0) == 0;
  PosixDisk disk;
  const std::string checkpoints = run_dir + "/checkpoints";
  if (leads) take_folder(disk, run_dir);
  const auto points = std::make_shared<Points>();
  const auto listeners = [&options, points](int rank) {
    Engine::Options made;
    const auto own = rank == 0 ? points : std::make_shared<Points>();
    made.callbacks.push_back(std::make_shared<RangeTest>(options, own));
    return made;
  };
  int code = 0;
  if (launched_rank()) {
    LaunchOptions launch{.run_dir = run_dir};
    launch.components.listeners = listeners;
    code = Launcher().train([&] { return shortened(recipe); }, launch);
  } else {
    LocalRunOptions local;
    local.ranks = std::max(1, options.local_ranks);
    local.run_dir = run_dir;
    local.live = local.quiet = true;
    local.prepare = [&](Job& job) { job.listeners = listeners; };
    code = train_in_one_process(shortened(recipe), local).exit_code;
  }
  if (!leads) return code;
  disk.remove_all(checkpoints);
  print_result(*points, options, run_dir);
  return code;
}

}  // namespace tutti
