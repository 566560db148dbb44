import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { appendHash } from '../../src/dynamic/signing/config-map-hash.ts';
import { requirement } from '../support/requirement.ts';
import { findProgram } from '../support/shells.ts';
import { numberOfRuns } from '../support/thorough.ts';

const KUBECTL = [findProgram('kubectl'), join(process.env.KUBEBUILDER_ASSETS ?? '/nonexistent', 'kubectl')].find(
  (path) => path !== null && existsSync(path),
);

describe.skipIf(requirement('kubectl', KUBECTL === undefined ? 'kubectl is not on the PATH' : null))(
  'hash suffix compared with kubectl',
  () => {
    it('is the same for random ConfigMaps', () => {
      const directory = mkdtempSync(join(tmpdir(), 'append-hash-'));
      const key = fc.stringMatching(/^[-_a-zA-Z0-9][-._a-zA-Z0-9]{0,20}$/);
      const text = fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.string(),
        fc.string({ unit: fc.constantFrom('<', '&', '\b', '\f', '\u2028', 'é', '\n', '"', '\\', '\x7f', '\x01') }),
      );
      const binary = fc.uint8Array({ minLength: 1, maxLength: 20 }).map((some) => Buffer.concat([Buffer.from([0xff]), some]));
      const content = fc.dictionary(key, fc.oneof({ weight: 4, arbitrary: text.map((one) => Buffer.from(one, 'utf8')) }, binary), {
        maxKeys: 4,
      });
      let run = 0;
      try {
        fc.assert(
          fc.property(fc.stringMatching(/^[a-z][a-z0-9]{0,15}$/), content, (name, files) => {
            const into = join(directory, String(run++));
            mkdirSync(into);
            const names = Object.keys(files);
            for (const file of names) writeFileSync(join(into, file), files[file] as Buffer);
            const from = names.map((file) => `--from-file=${file}=${join(into, file)}`);
            const argv = ['create', 'configmap', name, ...from, '--append-hash', '--dry-run=client', '-o', 'jsonpath={.metadata.name}'];
            const printed = execFileSync(KUBECTL as string, argv, { encoding: 'utf8', env: { PATH: process.env.PATH, HOME: directory } });
            const isText = (some: Buffer) => Buffer.from(some.toString('utf8'), 'utf8').equals(some);
            const data = Object.fromEntries(
              names.filter((file) => isText(files[file] as Buffer)).map((file) => [file, (files[file] as Buffer).toString('utf8')]),
            );
            const binaryData = Object.fromEntries(
              names.filter((file) => !isText(files[file] as Buffer)).map((file) => [file, files[file] as Buffer]),
            );
            expect(appendHash({ name, data, binaryData })).toBe(printed);
          }),
          { numRuns: numberOfRuns(200) },
        );
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }, 120_000);
  },
);
