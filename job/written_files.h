#pragma once

#include "job/job.h"

namespace tutti {

// Throws UserError where [[loggers]] or [[callbacks]] of the job's recipe name a file that the run itself
// writes or reads, that another of them names too, or that is no file but a folder, a pipe or a device.
void check_written_files(const Job& job);

}  // namespace tutti
