#include "training/callbacks/writers/export_for_inference.h"

#include "training/callbacks/factory.h"
#include "training/callbacks/options.h"
#include "training/callbacks/writers/file_names.h"
#include "training/callbacks/writers/weights_file.h"
#include "training/state.h"

namespace tutti {

void ExportForInference::write(const State& state) {
  write_weights_file(state, disk_, file_name(state, save_path_));
}

CallbackPtr ExportForInferenceOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<ExportForInference>(environment.disk, save_path, interval);
}

}  // namespace tutti
