#pragma once

#include "job/job.h"

namespace tutti {

// Throws UserError if [[loggers]] or [[callbacks]] of the job's recipe name a file that the run writes or
// reads, or that another section names too, or a folder, a pipe or a device instead of a file, or, by a name
// that is not absolute, a file out of the run's folder.
void check_written_files(const Job& job);

}  // namespace tutti
