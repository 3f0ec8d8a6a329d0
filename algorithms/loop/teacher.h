#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "algorithms/loop/teacher_model.h"
#include "models/layers/layer.h"
#include "recipe/setting.h"
#include "tensors/tree.h"
#include "training/trainee.h"

namespace tutti {

struct State;

// Of a run with averages of EMA: its weights, or the averages, with which its evaluations computed.
enum class TeacherWeights { kAsSaved, kAsEvaluated };

// A model that a run asks and does not train: in evaluation mode, without gradients, whole on this rank, in
// the run's precision.
class Teacher {
 public:
  // `teacher`: as of find_teacher (algorithms/loop/teacher_model.h). Builds the model for the samples of
  // `run`, on the meta device, with the surgery that its weights need. Throws UserError.
  Teacher(const Setting& teacher, const State& run, TeacherWeights weights = TeacherWeights::kAsEvaluated);

  const Model& model() const { return *model_.model; }
  // The outputs for a batch, before `load`: only their shapes count. Throws UserError.
  Outputs try_forward(const Batch& batch) const { return model_.try_forward(batch); }
  // Reads the weights. `digest`: of the weights that the resumed run had, or ""; becomes that of these.
  // Warns of weights that are not in the model, and of another digest. Throws UserError if the file lacks
  // weights of the model.
  void load(const State& run, std::string& digest);
  Outputs forward(const Batch& batch) const;

 private:
  uint64_t weights_digest() const;

  TeacherModel source_;
  TeacherWeights weights_;
  Trainee model_;
  std::string key_;  // "algorithms.0.teacher"
};

// The digest of a teacher's weights in the state of its algorithm (Stateful); "" as long as there is none.
std::string teacher_state(const std::string& digest);
std::string digest_of_teacher_state(const std::string& json);

// The teacher that a key names. Throws UserError with the key, unless the error is of a key of the teacher's.
std::shared_ptr<Teacher> make_teacher(const Setting& key, const State& run,
                                      TeacherWeights weights = TeacherWeights::kAsEvaluated);

}  // namespace tutti
