import {
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  DateFilterModule,
  HighlightChangesModule,
  ModuleRegistry,
  NumberFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  RowStyleModule,
  ScrollApiModule,
  TextFilterModule,
  colorSchemeVariable,
  themeQuartz,
} from 'ag-grid-community';

// One by one, because all of them together are half as large again.
ModuleRegistry.registerModules([
  CellStyleModule,
  ClientSideRowModelApiModule,
  ClientSideRowModelModule,
  ColumnApiModule,
  DateFilterModule,
  HighlightChangesModule,
  NumberFilterModule,
  RenderApiModule,
  RowApiModule,
  RowSelectionModule,
  RowStyleModule,
  ScrollApiModule,
  TextFilterModule,
]);

/** Of the root's: the grid grows with it. */
export const FONT_SIZE = 0.93;

export const gridTheme = themeQuartz.withPart(colorSchemeVariable).withParams({
  accentColor: 'var(--accent)',
  backgroundColor: 'var(--card)',
  foregroundColor: 'var(--text)',
  headerBackgroundColor: 'var(--raised)',
  borderColor: 'var(--line)',
  valueChangeValueHighlightBackgroundColor: 'color-mix(in srgb, var(--good) 30%, transparent)',
  fontFamily: 'inherit',
  fontSize: `${FONT_SIZE}rem`,
  cellHorizontalPadding: 10,
  // Whole pixels, so that lines are sharp: 30 and 34 on a desk.
  rowHeight: 'round(2.14rem, 1px)',
  headerHeight: 'round(2.43rem, 1px)',
  wrapperBorder: false,
  wrapperBorderRadius: 0,
});
