#include "tests/io/checkpoint/sample_checkpoint.h"

// write_sample_checkpoint FOLDER WORLD
int main(int, char** arguments) {
  tutti::PosixDisk disk;
  tutti::write_checkpoint(disk, arguments[1], tutti::sample_tensors(), std::atoi(arguments[2]));
}
