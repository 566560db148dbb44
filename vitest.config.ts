import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

const project = (name: string, testTimeout: number, folders = [name]) => ({
  test: {
    name,
    include: folders.map((folder) => `test/${folder}/**/*.test.ts`),
    testTimeout,
    hookTimeout: testTimeout,
    pool: 'forks' as const,
  },
});
/** Modules stay loaded from one file to the next: loading them takes longer than most files. */
const shared = <T extends ReturnType<typeof project>>({ test }: T) => ({ test: { ...test, isolate: false } });

export default defineConfig({
  test: {
    // A missing snapshot is a failure, here as in CI; `npx vitest -u FILE` writes it.
    update: 'none',
    // Vitest would leave a processor free. One worker more than processors: many tests wait for other processes.
    maxWorkers: availableParallelism() + 2,
    projects: [
      { test: { ...shared(project('unit', 60_000)).test, pool: 'threads' as const } },
      shared(project('integration', 120_000, ['contract', 'integration', 'shells'])),
      { test: { ...shared(project('shells', 120_000)).test, env: { KUBELETADM_TEST_OTHER_SHELLS: '1' } } },
      shared(project('over-ssh', 120_000)),
      project('slow', 120_000),
      project('e2e', 600_000),
    ],
  },
});
