#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/formats/json_line.h"
#include "io/line_file.h"
#include "recipe/setting.h"
#include "runtime/clock.h"
#include "runtime/disk.h"
#include "runtime/recorder.h"
#include "training/callbacks/options.h"
#include "training/callbacks/stoppers/stoppers.h"
#include "training/engine/callback.h"

namespace tutti {

// Writes the result file of an MLPerf Training submission, and a description of the system for the submitter
// to complete: root_folder/results/[system_name]/[benchmark]/result_[index].txt and
// root_folder/systems/[system_name].json. The timed run ends when a metric of an evaluation exceeds
// `target`. Rank 0 only. A resumed run continues its file after the last line at the time of the checkpoint.
// composer.callbacks.MLPerfCallback without clearing of system caches; lines as in
// github.com/mlcommons/logging.
class MLPerfCallback final : public Callback {
 public:
  using Options = MLPerfOptions;

  MLPerfCallback(Disk& disk, Recorder& recorder, std::shared_ptr<const Clock> clock, Options options)
      : disk_(disk),
        recorder_(recorder),
        clock_(std::move(clock)),
        options_(std::move(options)),
        metric_({options_.metric_name, options_.metric_label, "greater"}) {}

  std::string name() const override { return "MLPerfCallback"; }
  void require(const State& state) const override { metric_.require(state); }
  void init(State& state, Logger& logger) override;
  void after_load(State& state, Logger& logger) override;  // throws UserError if there is a result
  void fit_start(State& state, Logger& logger) override;
  void epoch_start(State& state, Logger& logger) override;
  void epoch_end(State& state, Logger& logger) override;
  void eval_start(State& state, Logger& logger) override;
  void eval_end(State& state, Logger& logger) override;
  void close(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  struct Entry {
    const char* key;
    std::string value = "null";  // as JSON
    JsonFields metadata = {};
    const char* type = "POINT_IN_TIME";
  };

  bool exists(const std::string& path);
  void open_file(const std::string& path);
  void write(const Entry& entry) { write_at(clock_->unix_ms(), entry); }
  void write_at(int64_t unix_ms, const Entry& entry);
  int64_t now(const State& state) const;  // in the benchmark's unit: epochs or samples
  std::string system_name(const State& state) const;
  void describe_system(const State& state);

  Disk& disk_;
  Recorder& recorder_;
  std::shared_ptr<const Clock> clock_;
  Options options_;
  WatchedMetric metric_;
  int64_t start_ms_ = 0;
  std::optional<LineFile> file_;  // on rank 0
  int64_t lines_ = 0;             // in the file
  bool running_ = false;          // run_start is written
  bool succeeded_ = false;        // the timed run is over; no more lines are written
};

}  // namespace tutti
