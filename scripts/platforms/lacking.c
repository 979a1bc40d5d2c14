// What h5py, NumPy and netCDF4 call and wine 8 has only the names of; `lacking.py` makes the library.
#include <windows.h>

typedef struct { double real, imaginary; } doubles;
typedef struct { float real, imaginary; } floats;
typedef struct { unsigned long control, status; } environment;

double creal(doubles it) { return it.real; }
double cimag(doubles it) { return it.imaginary; }
double creall(doubles it) { return it.real; }
double cimagl(doubles it) { return it.imaginary; }
float crealf(floats it) { return it.real; }
float cimagf(floats it) { return it.imaginary; }

// Keep the environment of floating-point operations, and begin one without exceptions.
int feholdexcept(environment *kept) {
    HMODULE runtime = GetModuleHandleA("ucrtbase.dll");
    int (*get)(environment *) = (void *)GetProcAddress(runtime, "fegetenv");
    int (*set)(const environment *) = (void *)GetProcAddress(runtime, "fesetenv");
    if (get(kept)) return 1;
    environment quiet = {kept->control, 0};
    return set(&quiet);
}
