#pragma once

#include <dlfcn.h>

#include "runtime/error.h"

namespace tutti {

// Sets `symbol` to the function or variable of this name in a library that dlopen has opened, and that has
// the name.
template <class Symbol>
void find_symbol(void* library, Symbol& symbol, const char* name) {
  symbol = reinterpret_cast<Symbol>(dlsym(library, name));
  TUTTI_ASSERT(symbol, name);
}

}  // namespace tutti
