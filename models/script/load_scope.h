#pragma once

#include <c10/util/Exception.h>

namespace tutti::script {

// While it lives, what libtorch does on this thread as it loads a script is bounded: texts that it joins
// ahead, since they are constants, are short (others are joined when the script runs), and its warnings, in
// which is text of the file, are dropped.
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
