#pragma once

#include <c10/util/Exception.h>

namespace tutti::script {

// Bounds libtorch on this thread while a script is loaded. libtorch computes ahead with constants: longer
// texts than 1 kB are made when the script runs. Warnings of libtorch, which quote the file, are dropped.
class LoadScope {
 public:
  LoadScope();
  ~LoadScope();
  LoadScope(const LoadScope&) = delete;

 private:
  struct Silence final : c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Silence silence_;
  c10::WarningUtils::WarningHandlerGuard guard_;
};

}  // namespace tutti::script
