#pragma once

#include "commands/predict.h"
#include "job/job.h"

namespace tutti {

// The job of a prediction. Of the recipe's data files only those of the evaluator must exist, and they may
// have no array "target". If the training data are missing, their number of classes and the kind of targets
// are those that make the model fit the checkpoint's weights. Throws UserError: the error of the training
// data, if the weights do not show them either.
Job prediction_job(const Setting& recipe, const PredictOptions& options);

// RunState::fitted of a checkpoint (as PredictOptions name one) of the run of a resolved recipe; "" if there
// is none that can be read.
std::string saved_fitted(const Setting& recipe, const std::string& checkpoint);

// The job of a resolved recipe with this dataset in place of all of its data; no folders are created. Throws
// UserError.
Job job_with_data(Setting recipe, const DatasetPtr& data);

}  // namespace tutti
