#pragma once

#include "io/weights/script_file.h"

namespace tutti::script {

// Looks at code of a script before libtorch loads it. Loading runs some: __setstate__ of classes, defaults of
// arguments, constants of classes, and operators on constants, which libtorch computes ahead.
// Throws UserError for code of which more than known operators run then.
void require_plain(const ScriptCode& code);

}  // namespace tutti::script
