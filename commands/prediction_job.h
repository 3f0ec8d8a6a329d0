#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/run_state.h"
#include "job/job.h"

namespace tutti {

struct PredictionJob {
  Job job;
  // The file of a predicted sample, within the folder of the data; empty where samples are no files.
  std::function<std::string(int64_t index)> file_of = {};
  // Of a predicted picture that could not be read, and that another replaced: the reason; else "".
  std::function<std::string(int64_t index)> why_replaced = {};
  // Of an evaluator with a share of the training data: the numbers of its samples there.
  std::optional<std::vector<int64_t>> share = {};
  // Of windows of a table: the row of each sample's target, among the samples of the data or of the share.
  std::vector<int64_t> target_rows = {};

  // The number of a predicted sample in the data; of a window, the number of the target's row.
  int64_t number_of(int64_t index) const {
    const int64_t row = target_rows.empty() ? index : target_rows.at(static_cast<std::size_t>(index));
    return share ? share->at(static_cast<std::size_t>(row)) : row;
  }
};

// The data that a prediction is made for.
struct PredictedData {
  std::string evaluator;  // its label
  // True: of an image folder, all pictures below the path, or the picture at the path, without classes, as if
  // the folder had pictures alone.
  bool has_no_classes = false;
  bool leaves_out_unreadable = false;  // pictures; else such a picture is an error
};

// The job of a prediction on the data of an evaluator. `checkpoint`: a checkpoint's or a run's folder; "":
// the run's newest. Of the recipe's data files only the evaluator's must exist, also without an array
// "target". If the training data are missing, the number of classes and the kind of targets follow from the
// checkpoint's weights. Throws UserError: the error of the training data, if the weights do not show classes
// and targets either.
PredictionJob prediction_job(const Setting& recipe, const std::string& checkpoint, const PredictedData& data);

// The state in a checkpoint (as of prediction_job) of the run of a resolved recipe; nullopt without a
// readable checkpoint. Reads the checkpoint whole, to see that it is good.
std::optional<RunState> saved_state(const Setting& recipe, const std::string& checkpoint);

// Warns if the evaluation data are a share of training data that are not those of the checkpoint, if any.
void warn_of_changed_split(const Job& job, const std::optional<RunState>& saved);

// The job of a resolved recipe with this dataset in place of all of its data; no folders are created. Throws
// UserError.
Job job_with_data(Setting recipe, const DatasetPtr& data);

}  // namespace tutti
