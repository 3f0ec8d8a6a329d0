#include "runtime/build_stamp.h"

// Of libtutti.so, where the code runs in it.
extern "C" const char* tutti_shared_build_stamp() __attribute__((weak));
extern "C" const char* tutti_commit() __attribute__((weak));

namespace tutti {

std::string build_stamp(const std::string& elsewhere) {
  return tutti_shared_build_stamp ? tutti_shared_build_stamp() : elsewhere;
}

std::string build_and_commit(const std::string& elsewhere) {
  return build_stamp(elsewhere) + ", commit " + (tutti_commit ? tutti_commit() : "unknown");
}

}  // namespace tutti
