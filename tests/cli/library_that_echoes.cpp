// Stands in for libtutti.so: prints its request, and fails on request.
#include <cstdio>
#include <stdexcept>
#include <string>

#include "commands/entry.h"
#include "runtime/error.h"

extern "C" int tutti_run(const TuttiRequest* request) {
  std::printf("%s path=%s run_dir=%s resume=%s checkpoint=%s local_ranks=%d ranks=%d data=%d digest=%d\n",
              request->command, request->path, request->run_dir, request->resume, request->checkpoint,
              request->local_ranks, request->ranks, request->scan_data, request->digest);
  for (int i = 0; i < request->override_count; ++i) std::printf("set %s\n", request->overrides[i]);
  const std::string resume = request->resume;
  if (resume == "user error") throw tutti::UserError({"there.toml", 3}, "this is wrong");
  if (resume == "failure") throw std::runtime_error("the disk is on fire");
  return resume == "three" ? 3 : 0;
}
