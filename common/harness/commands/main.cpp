// The main function of every program: with all stages, or with one.
#include "common/harness/commands/cli.hpp"

int main(int count, char** arguments) { return convladder::run_program(count, arguments); }
