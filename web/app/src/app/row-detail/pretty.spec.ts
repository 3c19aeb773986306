import { joinSentence, pretty } from './pretty';

describe('pretty', () => {
  it('gives every field of an object a line', () => {
    expect(pretty('{"a":1,"b":[2]}')).toBe('{\n  "a": 1,\n  "b": [\n    2\n  ]\n}');
  });

  it('lays out what JSON.stringify does in the same way', () => {
    const json = '{"a":{},"b":[ ],"c":[{"d":null},[true,-1.5]],"e":"{\\"x\\": [1,\\\\","":"\\u00fc"}';
    expect(pretty(` ${json} `)).toBe(JSON.stringify(JSON.parse(json), null, 2));
  });

  it.each(['9007199254740993', '0.12345678901234567890', '1e400', '1.0'])('keeps every digit of %s', (number) => {
    expect(pretty(`{"id":${number}}`)).toBe(`{\n  "id": ${number}\n}`);
  });

  it.each(['plain', '{"cut', '42', '{1}'])('leaves %s as it is', (text) => {
    expect(pretty(text)).toBe(text);
  });
});

describe('joinSentence', () => {
  it.each([
    ['left', /^Left join on id: the record of users, with the newest record of accounts\.$/],
    ['inner', /^Inner join on id: one row for every pair/],
    ['asof', /^As-of join on id: .* that is not later\.$/],
    ['outer', /^outer join of users and accounts on id\.$/],
  ])('says what a join of the kind %s does', (how, sentence) => {
    expect(joinSentence(how, 'id', 'users', 'accounts')).toMatch(sentence);
  });
});
