import { join } from 'node:path';
import type { Node } from 'typescript/unstable/ast';
import {
  isArrowFunction,
  isBlock,
  isConstructorDeclaration,
  isFunctionLikeDeclaration,
  isPropertyAssignment,
  isPropertyDeclaration,
  isReturnStatement,
  isVariableDeclaration,
} from 'typescript/unstable/ast/is';
import { API } from 'typescript/unstable/sync';
import { describe, expect, it } from 'vitest';
import { REPOSITORY, type SourceFile, sourceFiles } from '../support/source-files.ts';

const FILES = [...sourceFiles('src'), ...sourceFiles('lab')];

const LONGEST_FUNCTION = 80;
const LONG_FUNCTION = 60;
const LONGEST_FILE = 400;

/** Functions above the limit, with the lines that they may have. Entries may only shrink and disappear. */
const LONGER_FUNCTIONS: Readonly<Record<string, number>> = {
  'lab/api-server/server.ts startApiServer': 81,
};

/** Files above the limit, with the lines that they may have. Entries may only shrink and disappear. */
const LONGER_FILES: Readonly<Record<string, number>> = {};

/** Functions above `LONG_FUNCTION` lines; the goal is 10. This number may only shrink. */
const LONG_FUNCTIONS = 9;

interface Measured {
  /** `src/base/errors.ts messageOf`. */
  readonly name: string;
  readonly lines: number;
}

/** The named functions and methods of the sources, with the lines from their first to their last token. */
function measureFunctions(files: readonly SourceFile[]): readonly Measured[] {
  const api = new API({ cwd: REPOSITORY });
  try {
    const project = api.updateSnapshot({ openProject: join(REPOSITORY, 'tsconfig.json') }).getProjects()[0];
    return files.flatMap(({ path, lineOf }) => {
      const source = project?.program.getSourceFile(join(REPOSITORY, path));
      if (source === undefined) throw new Error(`${path} is not part of tsconfig.json`);
      const lines = (node: Node): number => lineOf(node.end - 1) - lineOf(node.getStart(source)) + 1;
      return namedFunctions(source, null).map(([name, node]) => ({ name: `${path} ${name}`, lines: lines(node) }));
    });
  } finally {
    api.close();
  }
}

/** A function that only returns another one is a wrapper: the returned one has its name. */
function namedFunctions(node: Node, givenName: string | null): readonly (readonly [string, Node])[] {
  const name = isFunctionLikeDeclaration(node) ? (nameOf(node) ?? givenName) : null;
  const body = isFunctionLikeDeclaration(node) ? node.body : undefined;
  const returned = body === undefined ? undefined : onlyResult(body);
  const isWrapper = returned !== undefined && isFunctionLikeDeclaration(returned);
  const found: (readonly [string, Node])[] = name === null || body === undefined || isWrapper ? [] : [[name, node]];
  node.forEachChild((child) => {
    found.push(...(isWrapper && child === body ? namedFunctions(returned, name) : namedFunctions(child, nameOf(node))));
  });
  return found;
}

function nameOf(node: Node): string | null {
  if (isConstructorDeclaration(node)) return 'constructor';
  if (isArrowFunction(node)) return null;
  const isNamed = [isFunctionLikeDeclaration, isVariableDeclaration, isPropertyAssignment, isPropertyDeclaration].some((is) => is(node));
  return isNamed && 'name' in node && node.name !== undefined ? (node.name as Node).getText() : null;
}

/** The value of a body that is an expression, or a single return statement. */
function onlyResult(body: Node): Node | undefined {
  if (!isBlock(body)) return body;
  const [first, ...more] = body.statements;
  return more.length === 0 && first !== undefined && isReturnStatement(first) ? first.expression : undefined;
}

/** Functions or files that are longer than allowed, and obsolete exceptions. */
function deviations(measured: readonly Measured[], limit: number, allowed: Readonly<Record<string, number>>): readonly string[] {
  const above = new Map(measured.filter(({ lines }) => lines > limit).map(({ name, lines }) => [name, lines]));
  return [
    ...[...above].flatMap(([name, lines]) => (lines <= (allowed[name] ?? limit) ? [] : [`${name}: ${lines} lines`])),
    ...Object.keys(allowed).flatMap((name) => (above.has(name) ? [] : [`${name}: remove it from the list of exceptions`])),
  ];
}

describe('lengths', () => {
  const functions = measureFunctions(FILES);

  it(`of functions are at most ${LONGEST_FUNCTION} lines`, () => {
    expect(deviations(functions, LONGEST_FUNCTION, LONGER_FUNCTIONS)).toEqual([]);
  });

  it(`of at most ${LONG_FUNCTIONS} functions are above ${LONG_FUNCTION} lines`, () => {
    const long = functions.filter(({ lines }) => lines > LONG_FUNCTION).toSorted((a, b) => b.lines - a.lines);
    const listed = long.map(({ name, lines }) => `${name}: ${lines} lines`);
    expect(listed.length, listed.join('\n')).toBeLessThanOrEqual(LONG_FUNCTIONS);
  });

  it(`of files are at most ${LONGEST_FILE} lines`, () => {
    const files = FILES.map(({ path, code }) => ({ name: path, lines: code.split('\n').length - 1 }));
    expect(deviations(files, LONGEST_FILE, LONGER_FILES)).toEqual([]);
  });

  it('are measured for closures, methods and the function that a wrapper returns', () => {
    expect(functions.length).toBeGreaterThan(5_000);
    const names = functions.map(({ name }) => name);
    expect(names).toContain('src/base/errors.ts messageOf');
    expect(names.filter((name) => name.startsWith('src/base/errors.ts'))).toContain('src/base/errors.ts constructor');
  });
});
