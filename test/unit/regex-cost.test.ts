import { describe, expect, it } from 'vitest';
import { regexCost } from '../support/regex-cost.ts';

/** Measured in Node.js; recheck 4.5 classifies each of them alike. */
describe('the time a regular expression takes', () => {
  it.each([
    /^(?:[0-9]+[smhdw]?)+$/,
    /^(a*)*$/,
    /^(a|a)*$/,
    /^(?:a?b?)*c$/,
    /^(?:(?:a?|b?)x)*y$/,
    /^[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_:.@-]+)+$/,
    /(\w+\s?)*:/,
  ])('%s is exponential', (regex) => expect(regexCost(regex.source, regex.flags).growth).toBe('exponential'));

  it.each([
    /\s+$/,
    /a+b/,
    /^a*a*b/,
    /^\s*x/m,
    /-----BEGIN A-----[\s\S]*?-----END A-----/,
    /-----BEGIN (A|B)-----[\s\S]*?-----END \1-----/,
    /\beyJ[\w-]{8,}\./,
    /unknown flag: (.+)$/,
    /^(.+) for (.+): x/,
    /(?!x*y)z/,
    /^(?:error: )?(.*?)\.?\s*(?:\((Did you mean .*)\)\s*)?$/s,
    /[^/]*$/,
    /^(?:true|[0-9]+\.?[0-9]*)$/i,
    /(?:ab)+c/,
  ])('%s is polynomial', (regex) => expect(regexCost(regex.source, regex.flags).growth).toBe('polynomial'));

  it.each([
    /^\s*x/,
    /^[ \t]*x/m,
    /\s+/g,
    /a*/,
    /foo.*/,
    /foo[\s\S]*$/,
    /x(?:ab)*c/,
    /\/\*[\s\S]*/,
    /\n\s*\n/,
    /^(?:a+b)*$/,
    /^"(?:[^"\\]|\\.)*"/,
    /^[0-9]+(?:\.[0-9]*)?$/,
    /(?<![\w-])eyJ[\w-]{8,}\./,
    /[a-z]{1,100}x/,
    /x+y/y,
    /-----BEGIN A-----[^-]*-----END A-----/g,
    /^(?:x|(?=a*b)c)*$/,
  ])('%s is linear', (regex) => expect(regexCost(regex.source, regex.flags).growth).toBe('linear'));

  it('returns the repeated text', () => expect(regexCost('^x(?:ab|abab)*c', '').witness).toBe('"ababab"'));

  it('reports expressions that it cannot analyse', () => expect(regexCost('(?<=a+)b', '')).toMatchObject({ growth: 'unknown' }));
});
