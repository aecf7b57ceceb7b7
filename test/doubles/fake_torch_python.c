/* Stands in for libtorch_python.so: what the agent finds behind the name that it takes. */
void *initModule(void);

void *initModule(void)
{
    static int module;
    return &module;
}
