#include "training/callbacks/monitors/seconds_in.h"

#include "runtime/error.h"

namespace tutti {

double seconds_in(const std::string& time_unit) {
  if (time_unit == "seconds") return 1.0;
  if (time_unit == "minutes") return 60.0;
  if (time_unit == "hours") return 3600.0;
  if (time_unit == "days") return 86400.0;
  throw UserError("time_unit: expected seconds, minutes, hours or days, found '" + time_unit + "'");
}

}  // namespace tutti
