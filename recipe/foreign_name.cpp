#include "recipe/foreign_name.h"

#include "runtime/text.h"

namespace tutti {

// "Trainer.fit.duration" also matches "fit.duration" and "duration".
bool ForeignName::is_called(const std::string& other) const {
  const std::string own = lower_case(name), searched = lower_case(other);
  return own == searched || own.ends_with('.' + searched);
}

std::string ForeignName::translation() const {
  const std::string whose = origin + ' ' + name;
  if (target.empty()) return whose + ": " + note;
  return whose + " is " + target + (note.empty() ? "" : ": " + note);
}

}  // namespace tutti
