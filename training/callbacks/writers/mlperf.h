#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "io/json_line.h"
#include "runtime/disk.h"
#include "training/callback.h"

namespace tutti {

// Writes the result file of an MLPerf Training submission, and a description of the system to be checked and
// filled in by hand: root_folder/results/[system_name]/[benchmark]/result_[index].txt, root_folder/systems/
// [system_name].json. The timed run ends when a metric of an evaluation surpasses `target`. Rank 0 alone.
// composer.callbacks.MLPerfCallback, but for its clearing of the system's caches. The lines are those of
// github.com/mlcommons/logging.
class MLPerfCallback final : public Callback {
 public:
  struct Options {
    std::string root_folder;  // see file_name
    int64_t index = 0;        // the repetition of the run
    std::string benchmark = "resnet";
    double target = 0.759;
    std::string division = "open";
    std::string metric_name = "MulticlassAccuracy";
    std::string metric_label = "eval";
    std::string submitter = "MosaicML";
    std::string system_name;  // "": "8xCPU_tutti"
    std::string status = "onprem";
    bool exist_ok = false;  // an older result file is written over, and no error
  };
  using UnixMs = std::function<int64_t()>;

  MLPerfCallback(Disk& disk, UnixMs clock, Options options)
      : disk_(disk), clock_(std::move(clock)), options_(std::move(options)) {}

  std::string name() const override { return "MLPerfCallback"; }
  void init(State& state, Logger& logger) override;
  void after_load(State& state, Logger& logger) override;  // UserError where there is a result already
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

  void write(const Entry& entry) { write_at(clock_(), entry); }
  void write_at(int64_t unix_ms, const Entry& entry);
  std::string system_name(const State& state) const;
  void describe_system(const State& state);

  Disk& disk_;
  UnixMs clock_;
  Options options_;
  int64_t began_ms_ = 0;
  std::unique_ptr<WritableFile> file_;  // null on other ranks
  bool succeeded_ = false;              // the timed run is over: nothing more is written
  bool resumed_ = false;
};

}  // namespace tutti
