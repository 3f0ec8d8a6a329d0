#pragma once

#include <memory>

#include "training/loggers/trackers/mlflow_store.h"

namespace tutti {

// Logs to MLflow, into files or to a server: composer.loggers.MLFlowLogger. A point's step is Composer's: the
// number of finished batches. A resumed run continues the same run of MLflow.
class MlflowLogger final : public LoggerDestination {
 public:
  explicit MlflowLogger(std::shared_ptr<MlflowStore> store) : store_(std::move(store)) {}

  std::string name() const override { return "MLFlowLogger"; }
  bool durable() const override { return true; }
  void open(const LogStart& start) override { store_->open(start); }
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  // Figures of the machine are under "system/", where MLflow shows them apart.
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  // Artifacts: a text file; JSON of columns and data, as of mlflow.log_table; PNG files.
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  void log_images(const LoggedImages& images, const LogTime& time) override;
  // A run that ended with steps without finite numbers has failed.
  void log_training_end(const TrainingEnded& ended, const LogTime&) override {
    if (ended.skipped_at_end > 0) store_->mark_failed();
  }
  void flush(bool sync) override { store_->flush(sync); }
  bool finish(bool late) override { return store_->finish(late); }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(10); }

 private:
  std::shared_ptr<MlflowStore> store_;
};

// A name of a metric or hyperparameter as MLflow takes it: letters, digits and . _ - / and space.
std::string mlflow_name(const std::string& name);

}  // namespace tutti
