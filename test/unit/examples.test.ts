import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import * as z from 'zod';
import { readCommandLine } from '../support/read-command-line.ts';
import { runCommand } from '../support/run-cli.ts';
import { REPOSITORY } from '../support/source-files.ts';

const FOLDER = join(REPOSITORY, 'examples');
const FILES = readdirSync(FOLDER, { recursive: true, withFileTypes: true, encoding: 'utf8' })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(FOLDER.length + 1))
  .toSorted();
const inFolder = (folder: string): readonly string[] => FILES.filter((file) => file.startsWith(`${folder}/`));
const textOf = (file: string): string => readFileSync(join(FOLDER, file), 'utf8');

describe('examples', () => {
  it('are listed in README.md', () => {
    const readme = textOf('README.md');
    const listed = FILES.filter((file) => readme.includes(file) || readme.includes(`(${file.split('/')[0]}/)`));
    const allowed = ['README.md', 'fleets/small-cluster.yaml', 'systemd/kubeletadm-certs.service'];
    expect(FILES.filter((file) => !listed.includes(file))).toEqual(allowed.toSorted());
  });

  it.each([...textOf('README.md').matchAll(/^kubeletadm (.*)$/gm)].map(([, line = '']) => line))(
    'kubeletadm %s runs in the repository',
    async (line) => {
      const words = line.split(' ').map((word) => (word.startsWith('examples/') ? join(REPOSITORY, word) : word));
      expect(await runCommand(words)).toMatchObject({ code: 0, stderr: '' });
    },
  );

  it.each(inFolder('bootstrap'))('%s is valid', async (file) => {
    expect(await runCommand(['config', 'validate', join(FOLDER, file)])).toMatchObject({ code: 0, stdout: 'ok\n', stderr: '' });
  });

  it.each([
    ['fleets/small.yaml', 3],
    ['fleets/large.yaml', 1501],
    ['fleets/edge.yaml', 40],
    ['fleets/gates.yaml', 20],
  ])('%s is valid', async (file, hosts) => {
    const path = join(FOLDER, file);
    expect(await runCommand(['fleet', 'validate', '-f', path])).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await runCommand(['fleet', 'inventory', '-f', path, '--no-headers']);
    expect(stdout.trimEnd().split('\n')).toHaveLength(hosts);
  });

  it.each(inFolder('systemd'))('%s has the sections of a unit', (file) => {
    const lines = textOf(file)
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(lines.filter((line) => !/^\[(?:Unit|Service|Timer|Install)\]$|^[A-Z]\w+=\S.*$/.test(line))).toEqual([]);
    expect(lines[0]).toBe('[Unit]');
  });

  it('ci/github-fleet.yml is a workflow', () => {
    const step = z.union([
      z.strictObject({
        uses: z.string().regex(/^[\w-]+\/[\w-]+@v\d+$/),
        if: z.string().optional(),
        with: z.record(z.string(), z.unknown()).optional(),
      }),
      z.strictObject({
        name: z.string().optional(),
        shell: z.literal('bash').optional(),
        run: z.string(),
        if: z.string().optional(),
        env: z.record(z.string(), z.string()).optional(),
      }),
    ]);
    const job = z.strictObject({ if: z.string(), 'runs-on': z.string(), environment: z.string(), steps: z.array(step).min(1) });
    const trigger = z.strictObject({ branches: z.array(z.string()).optional(), paths: z.array(z.string()) });
    const workflow = z.strictObject({
      name: z.string(),
      on: z.strictObject({ pull_request: trigger, push: trigger }),
      permissions: z.strictObject({ contents: z.literal('read') }),
      concurrency: z.strictObject({ group: z.string(), 'cancel-in-progress': z.literal(false) }),
      env: z.record(z.string(), z.string()),
      jobs: z.strictObject({ plan: job, apply: job }),
    });
    // Without a named shell, bash ignores the failure of a command before a pipe.
    const { jobs } = parse(textOf('ci/github-fleet.yml')) as {
      readonly jobs: Readonly<Record<string, { readonly steps: readonly { run?: string; shell?: string }[] }>>;
    };
    const steps = Object.values(jobs).flatMap((each) => each.steps);
    expect(steps.filter(({ run = '', shell }) => / \| /.test(run) && shell !== 'bash')).toEqual([]);
    expect(workflow.safeParse(parse(textOf('ci/github-fleet.yml'))).error?.issues ?? []).toEqual([]);
  });

  it('ci/gitlab-ci.yml is a pipeline', () => {
    const job = z.strictObject({
      stage: z.enum(['validate', 'plan', 'apply']),
      rules: z.array(z.strictObject({ if: z.string() })),
      environment: z.strictObject({ name: z.string(), action: z.literal('verify').optional() }).optional(),
      resource_group: z.string().optional(),
      interruptible: z.boolean().optional(),
      script: z.array(z.string()).min(1),
      artifacts: z
        .strictObject({
          when: z.literal('always'),
          expose_as: z.string().optional(),
          paths: z.array(z.string()).optional(),
          reports: z.strictObject({ junit: z.string() }).optional(),
        })
        .optional(),
    });
    const pipeline = z.strictObject({
      stages: z.array(z.string()),
      default: z.strictObject({ image: z.string(), before_script: z.array(z.string()) }),
      validate: job,
      plan: job,
      apply: job,
    });
    expect(pipeline.safeParse(parse(textOf('ci/gitlab-ci.yml'))).error?.issues ?? []).toEqual([]);
  });
});

/** Command lines of the program in a text: those of comments, scripts and units. */
function commandLines(text: string): readonly string[] {
  return text
    .split('\n')
    .flatMap(
      (line) => /^(?:\s*|.*: |ExecStart=|#\s+|\s*- )(?:KUBELETADM_TOKEN=\S+ )?(?:\/usr\/bin\/)?(kubeletadm [a-z].*)$/.exec(line)?.[1] ?? [],
    )
    .map((line) => line.replace(/ (?:\||#|>).*$/, '').replace(/;.*$/, ''));
}

/** Reads a command line as the program does, without running it. */
async function read(line: string): Promise<unknown> {
  const words = (line.match(/"[^"]*"|\S+/g) ?? []).slice(1).map((word) => word.replace(/^"(.*)"$/, '$1'));
  return readCommandLine(words);
}

describe('the command lines of the examples', () => {
  const lines = FILES.flatMap((file) => commandLines(textOf(file)).map((line) => ({ file, line })));

  it('are found', () => {
    expect(lines.length).toBeGreaterThan(12);
  });

  it.each(lines)('$file: $line', async ({ line }) => {
    expect(await read(line)).toBeDefined();
  });
});
