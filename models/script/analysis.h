#pragma once

#include <memory>

#include "models/script/code.h"

namespace tutti::script {

struct Script;
class ScriptLayer;

// Reads the functions of a script before they run: finds which layers read others' tensors, and whether the
// script was traced in evaluation.
class Analysis {
 public:
  explicit Analysis(Script& script);
  ~Analysis();
  // Throws UserError, with the line of the Python file, for what tutti cannot run.
  void run(ScriptLayer& root);

 private:
  class Walk;
  std::unique_ptr<Walk> walk_;
};

}  // namespace tutti::script
