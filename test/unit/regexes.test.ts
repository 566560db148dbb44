import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { regexCost } from '../support/regex-cost.ts';
import { sourceFiles } from '../support/source-files.ts';

const FILES = [...sourceFiles('src'), ...sourceFiles('lab')];
const BUILT = /\bnew RegExp\(/g;

/** Expressions assembled in functions, each with the reason why it is fast. */
const IN_FUNCTIONS: Readonly<Record<string, string>> = {
  'src/kube/name-rules.ts': 'the pattern is a constant of the caller',
  'lab/hosts/stand-in-kubelet.ts': 'the name of a flag, followed by one repetition',
};

interface Found {
  readonly pattern: string;
  readonly flags: string;
  readonly where: string;
}

function slowOnes(found: readonly Found[]): readonly string[] {
  return found.flatMap(({ pattern, flags, where }) => {
    const { growth, witness } = regexCost(pattern, flags);
    return growth === 'linear' ? [] : [`${where}: /${pattern}/${flags} takes ${growth} time where ${witness} is repeated`];
  });
}

/** Hosts, servers and files are untrusted input, and all hosts of a run wait for one expression. */
describe('every regular expression takes linear time', () => {
  it('in the sources', () => {
    const found = FILES.flatMap(({ path, regexes }) => regexes.map(({ line, ...regex }) => ({ ...regex, where: `${path}:${line}` })));
    expect(found.length).toBeGreaterThan(500);
    const unique = new Map(found.map((each) => [`/${each.pattern}/${each.flags}`, each] as const));
    expect(slowOnes([...unique.values()])).toEqual([]);
  });

  describe('assembled when a module is loaded', () => {
    const built: Found[] = [];
    const modules = FILES.filter(({ code, path }) => code.match(BUILT) !== null && !(path in IN_FUNCTIONS));

    beforeAll(async () => {
      vi.resetModules();
      for (const { path } of modules) {
        const recorder = new Proxy(RegExp, {
          construct: (target, args: [string | RegExp, string?]) => {
            const made = Reflect.construct(target, args) as RegExp;
            built.push({ pattern: made.source, flags: made.flags, where: path });
            return made;
          },
        });
        vi.stubGlobal('RegExp', recorder);
        await import(`../../${path}`);
        vi.unstubAllGlobals();
      }
    });
    afterAll(() => vi.unstubAllGlobals());

    it('all are found', () => {
      const count = modules.reduce((sum, { code }) => sum + (code.match(BUILT)?.length ?? 0), 0);
      expect(built.length).toBeGreaterThanOrEqual(count);
    });

    it('none is slow', () => expect(slowOnes(built)).toEqual([]));
  });
});
