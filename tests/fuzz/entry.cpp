// The entry points of libFuzzer. TUTTI_FUZZ_TARGET names the reader.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/file_in_memory.h"
#include "tests/fuzz/targets.h"

namespace {

void (*read_bytes)(const std::string& bytes) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const wanted = std::getenv("TUTTI_FUZZ_TARGET");
  tutti::fuzz::ignore_words();
  for (const auto& [name, read] : tutti::fuzz::targets())
    if (wanted != nullptr && std::strcmp(name, wanted) == 0) read_bytes = read;
  if (read_bytes != nullptr) return 0;
  std::fprintf(stderr, "TUTTI_FUZZ_TARGET must be one of\n");
  for (const auto& [name, read] : tutti::fuzz::targets()) std::fprintf(stderr, "%s\n", name);
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, size_t size) {
  read_bytes({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
